# Work for values, lists, dictionaries, procedures, variables, traces, namespaces and interpreters.
proc twice {x {y 2}} { return [expr {$x * $y}] }
proc fails {} { error "on purpose" }
for {set i 0} {$i < 20} {incr i} {
	lappend l [twice $i]
	dict set d key$i [list $i a b]
	set a($i) [string repeat x $i]
	catch {fails} message options
}
lsort -integer -decreasing $l
lsearch -all $l 1*
lset l 3 [lrange $l 1 4]
dict for {k v} $d { dict update d $k w { lappend w c } }
dict with d { set key1 x }
dict merge $d {a b}
foreach {k v} [array get a 1*] { regsub -all x $v y v }
namespace eval n { variable v 1; proc p args { variable v; upvar 1 l m; llength $m }; namespace export p; namespace ensemble create }
n p
trace add variable a write {apply {args {incr ::writes}}}
set a(1) new
array unset a 1*
trace remove variable a write {apply {args {incr ::writes}}}
switch -regexp -matchvar got abc { {a(.)c} { set got } default { } }
string map {a b c d} [join [split {a,b,c} ,] -]
interp create child
interp alias child t {} twice 4
child eval {t 3}
interp delete child
catch {lindex $l a b c}
catch {dict get $d none}
catch {linsert}
namespace delete n
set f [open [info script]]
while {[gets $f line] >= 0} { scan $line {%s %d} x y }
close $f
exit 0
