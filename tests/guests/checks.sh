# SPDX-License-Identifier: GPL-2.0-only
# What a guest is held to. Each check is a function; its answer is a line on fd 3: ok NAME, fail NAME REASON.
# /t holds the programs, the scripts that the host has exported, and what the host knows of the kernel (/t/facts).
set -u
# shellcheck source=/dev/null
. /t/facts
tracing=/sys/kernel/tracing
PERF_BUILDID_DIR=/tmp/cache
export PERF_BUILDID_DIR

# why REASON...: the check's, which ends there
why() {
	printf 'fail %s %s\n' "$check" "$(echo "$*" | tr '\n' '|')" >&3
	grep -v '^#' $tracing/trace | tail -5
	exit 1
}

same() {
	[ "$1" = "$2" ] || why "$3: $1 instead of $2"
}

none_left() {
	same "$(cat $tracing/uprobe_events $tracing/kprobe_events)" '' 'events stay'
}

# answer FILE WORD...: what the script in FILE says, piped to a shell as over ssh. Its status is the function's.
answer() {
	script=$1
	shift
	sh -s "$@" <"$script" 2>&1
}

# lines EVENT: those in the trace buffer
lines() {
	grep " $1: " $tracing/trace
}

# a program's markers: the other build is refused; the events are what it prints
user_script() {
	said=$(answer /t/other.sh install) && why 'probes of another build were installed'
	case $said in
	*'has the build-id'*'nothing was done'*) ;;
	*) why "the other build: $said" ;;
	esac
	none_left
	said=$(answer /t/user.sh install) || why "install: $said"
	same "$(printf '%s\n' "$said" | wc -l)" 2 'lines installed'
	same "$said" "$(cat $tracing/uprobe_events)" 'lines printed'
	echo >$tracing/trace
	for event in plain guarded; do
		echo 1 >$tracing/events/sdt_pad/$event/enable || why "cannot enable $event"
	done
	/t/sdt-pad >/tmp/truth
	for event in plain guarded; do
		echo 0 >$tracing/events/sdt_pad/$event/enable
	done
	grep -c '^passed 7$' /tmp/truth || why 'the counter was not raised'
	lines plain | sed 's/.* arg1=//' >/tmp/seen
	same "$(cat /tmp/seen)" "$(sed -n 's/^plain //p' /tmp/truth)" 'plain'
	lines guarded | sed 's/.* arg1=\(.*\) arg2=/\1 /' >/tmp/seen
	same "$(cat /tmp/seen)" "$(sed -n 's/^guarded //p' /tmp/truth)" 'guarded'
	same "$(/t/sdt-pad | grep '^passed')" 'passed 0' 'the counter afterwards'
	said=$(answer /t/user.sh remove) || why "remove: $said"
	none_left
}

# functions of the kernel: another kernel is refused; each call of ours is an event with our arguments
kernel_script() {
	said=$(answer /t/other-kernel.sh install) && why 'probes of another kernel were installed'
	case $said in
	*'this kernel has the build-id'*'nothing was done'*) ;;
	*) why "the other kernel: $said" ;;
	esac
	none_left
	said=$(answer /t/kernel.sh install) || why "install: $said"
	same "$(printf '%s\n' "$said" | wc -l)" 3 'lines installed'
	echo >$tracing/trace
	echo 1 >$tracing/events/probe/enable || why 'cannot enable the events'
	/t/calls /no/such/file 37 >/tmp/truth &
	pid=$!
	wait $pid
	echo 0 >$tracing/events/probe/enable
	same "$(cat /tmp/truth)" 'opens 37 missing 37 flags 0x20002' 'the program'
	# openat2 adds O_LARGEFILE, 0x8000; "calls-123 ": those of other programs, and of its own start, are told apart by path and flags
	same "$(lines opens | grep -c -- "-$pid .* flags=0x28002 name=\"/no/such/file\"\$")" 37 'opens'
	same "$(lines opened | grep -c -- "-$pid .* ret=-2\$")" 37 'returns with ENOENT'
	same "$(lines path | grep -c -- "-$pid .* name=\"/no/such/file\"\$")" 37 "$path_function"
	same "$(cat $tracing/kprobe_profile | sed 's/ *[0-9]*$//; s/.* //' | grep -c '^0$')" 0 'events without a hit'
	said=$(answer /t/kernel.sh remove) || why "remove: $said"
	none_left
}

# what the kernel keeps from being probed is said, and nothing of that script stays
kernel_notrace() {
	said=$(answer /t/notrace.sh install) && why 'the kernel has taken kobject_get'
	case $said in
	*'does not take kobject_get'*notrace*'nothing stays'*) ;;
	*) why "$said" ;;
	esac
	none_left
}

# what the guest itself tells of its kernel (BTF, kallsyms, notes) is what the host was told
kernel_here() {
	export_here() {
		/t/reftrace probe export -q --kernel "$@"
	}
	with_definitions export_here >/tmp/here.sh 2>/tmp/said || why "$(cat /tmp/said)"
	cmp /tmp/here.sh /t/kernel.sh || why "another script: $(diff /tmp/here.sh /t/kernel.sh | head -4)"
}

record_marker() {
	/t/reftrace record -o /tmp/r.data -e sdt_pad:guarded -- /t/sdt-pad wait >/tmp/truth 2>/tmp/said ||
		why "status $?: $(cat /tmp/said)"
	grep -c '^passed 7$' /tmp/truth || why 'the counter was not raised'
	/t/reftrace script -i /tmp/r.data | sed -n 's/.* sdt_pad:guarded: .*arg1=\(.*\) arg2=/\1 /p' >/tmp/seen
	same "$(cat /tmp/seen)" "$(sed -n 's/^guarded //p' /tmp/truth)" 'guarded'
	none_left
}

# next: one round of counted, and what it says then
next() {
	echo go >&4
	read -r said <&5 || why 'counted has ended'
}

# wanted YES|NO: rounds until the counter is so; each is an answer of the program, a hundred seconds at most
wanted() {
	rounds=0
	while :; do
		next
		case $said in
		'counter 0 '*) is=NO ;;
		*) is=YES ;;
		esac
		[ $is = "$1" ] && return
		rounds=$((rounds + 1))
		[ $rounds -lt 1000 ] || why "the counter is not wanted=$1: $said"
		usleep 100000
	done
}

# attached SIGNAL [OPTION]: reftrace record on counted for three rounds, ended by the signal. What it said is in /tmp/said.
attached() {
	before=${said##* }
	rm -f /tmp/ctl /tmp/ack
	mkfifo /tmp/ctl /tmp/ack
	exec 6<>/tmp/ack
	/t/reftrace record -o "/tmp/$1.data" ${2:+"$2"} -e sdt_guest:pass -p "$counted" --control=fifo:/tmp/ctl,/tmp/ack >/tmp/said 2>&1 &
	tool=$!
	echo ping >/tmp/ctl
	# it records from here on
	read -r said <&6
	for round in 1 2 3; do
		next
		same "$said" "counter 1 passed $((before + round))" 'while it is recorded'
	done
	kill -"$1" $tool
	wait $tool
	status=$?
	wanted NO
	exec 6>&-
}

# recorded: as many events as there were rounds
recorded() {
	same $status 0 "status after SIGTERM: $(cat /tmp/said)"
	same "$(/t/reftrace script -i /tmp/TERM.data | grep -c ' sdt_guest:pass: ')" 3 'events'
}

# returns [OPTION]: the counter is raised by reftrace alone, and what it was however that ends
returns() {
	mkfifo /tmp/in /tmp/answers
	/t/counted </tmp/in >/tmp/answers &
	counted=$!
	exec 4>/tmp/in 5</tmp/answers
	read -r said <&5
	next
	same "$said" 'counter 0 passed 0' 'before'
	attached TERM "$@"
	recorded
	attached KILL "$@"
	same $status 137 'status after SIGKILL'
	# and once more: nothing of the killed one is in the way
	attached TERM "$@"
	recorded
	exec 4>&-
	wait $counted
	none_left
}

# modules that come and go meanwhile are told by their tracepoints, and are code from then on
record_modules() {
	# where the kernel's package has none, there is nothing to ask
	[ -e /t/loop.ko ] || return 0
	/t/reftrace record -q -a -F 49 -o /tmp/modules.data -- \
		sh -c 'insmod /t/loop.ko && rmmod loop && insmod /t/loop.ko' >/tmp/out 2>&1 || why "$(cat /tmp/out)"
	/t/reftrace script --show-mmap-events -i /tmp/modules.data >/tmp/script || why 'script'
	rmmod loop
	same "$(grep -c ' module:module_load: .*loop' /tmp/script)" 2 'loads'
	same "$(grep -c ' module:module_free: .*loop' /tmp/script)" 1 'ends'
	at=$(sed -n 's/.* module:module_load: .*/load/p; s/.*MMAP2 -1\/.*: \[loop\]$/map/p' /tmp/script | tr '\n' ' ')
	case $at in
	'load '*map*) ;;
	*) why "in the order $at" ;;
	esac
}

counter_returns() {
	returns
}

# not by the kernel: as on those before Linux 4.20
counter_written() {
	returns --semaphore=write
}

# names_guilty WORD...: the bundled demo's fault, with all that it counts; before Linux 5.12 the refusal, with the reason
names_guilty() {
	if [ "$atomics" = no ]; then
		said=$(/t/reftrace run "$@" -- /t/leak 100 2>&1) && why 'BPF programs with atomics on a kernel without'
		case $said in
		*'does not take the BPF programs'*'Linux 5.12 or newer'*) ;;
		*) why "$said" ;;
		esac
		none_left
		return
	fi
	/t/reftrace run "$@" -- /t/leak 100 >/tmp/served 2>/tmp/report || why "$* status $?: $(cat /tmp/report)"
	grep -q 'missing put in parse_header() .*certain: all 20' /tmp/report || why "$*: $(cat /tmp/report)"
	grep -q 'trust: complete - 580 events, 0 lost, 3 points' /tmp/report || why "$*: $(cat /tmp/report)"
	none_left
}

run_auto() {
	names_guilty
}

run_tracefs() {
	names_guilty --attach=tracefs
}

# Linux 6.6 and newer; before, it is refused with the reason
run_multi() {
	if [ "$multi" = yes ]; then
		names_guilty --attach=multi
		return
	fi
	said=$(/t/reftrace run --attach=multi -- /t/leak 100 2>&1) && why 'uprobe_multi on a kernel without it'
	case $said in
	*'uprobe_multi'*) ;;
	*) why "$said" ;;
	esac
	none_left
}

# pages FILE ADDRESS: 16 pages of memory from an address on, out of a core file with 4 to 60 segments
pages() {
	od -A n -v -t x8 -w56 -j 64 -N 3360 "$1" | while read -r kind offset start _ size _; do
		[ "${kind#????????}" = 00000001 ] || continue
		[ $((0x$2 - 0x$start >= 0 && 0x$2 - 0x$start < 0x$size)) = 1 ] || continue
		dd if="$1" bs=4096 skip=$(((0x$offset + 0x$2 - 0x$start) / 4096)) count=16 2>/dev/null
		break
	done
}

# the kernel's code in the build-id cache is what lies in its memory, and kept once
kernel_code() {
	[ -e /proc/kcore ] || why 'no /proc/kcore'
	said=$(/t/reftrace cache add /proc/kcore 2>&1) || why "$said"
	same "$said" 'added /proc/kcore' 'cache add'
	same "$(/t/reftrace cache -k /proc/kcore)" 'was there /proc/kcore' 'again'
	stext=$(sed -n 's/ T _stext$//p' /proc/kallsyms)
	pages "$(echo "$PERF_BUILDID_DIR"/*kernel.kcore*/*/*/kcore)" "$stext" >/tmp/kept
	pages /proc/kcore "$stext" >/tmp/memory
	same "$(wc -c </tmp/memory)" 65536 'bytes of memory'
	cmp /tmp/kept /tmp/memory || why 'what was kept is not what lies in memory'
	/t/reftrace cache rm '[kernel.kcore]' || why 'rm'
	/t/reftrace cache list | grep kcore && why 'it stays'
	true
}

# each check is a shell of its own, ends in time, and has nothing of the one before
if [ $# = 1 ]; then
	check=$1
	echo "--- $check"
	"$check" && printf 'ok %s\n' "$check" >&3
	exit
fi
for one in $checks; do
	timeout -s KILL 150 sh "$0" "$one"
	[ $? != 137 ] || printf 'fail %s it did not end within 150 s\n' "$one" >&3
	echo 0 >$tracing/events/enable
	echo >$tracing/kprobe_events
	echo >$tracing/uprobe_events
done
echo end >&3
