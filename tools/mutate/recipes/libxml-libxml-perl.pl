# Documents, fragments, moved and cloned nodes, searches, a schema, text that does not parse.
use strict;
use warnings;
use XML::LibXML;
use XML::LibXML::XPathContext;
use XML::LibXML::Reader;

my $text = '<?xml version="1.0"?><a xmlns:x="urn:x"><b n="1">one</b><b n="2">two<!-- c --></b><x:d><e/></x:d></a>';

sub build {
    my $doc = XML::LibXML::Document->new('1.0', 'UTF-8');
    my $root = $doc->createElement('root');
    $doc->setDocumentElement($root);
    for my $i (1 .. 6) {
        my $e = $doc->createElementNS('urn:x', "x:e$i");
        $e->setAttribute(n => $i);
        $e->appendText("text $i");
        $root->appendChild($e);
        $e->addNewChild('urn:y', 'inner')->appendChild($doc->createCDATASection('<raw>'));
    }
    my $fragment = $doc->createDocumentFragment;
    $fragment->appendChild($doc->createComment('c'));
    $fragment->appendChild($doc->createElement('f'));
    $root->insertBefore($fragment, $root->firstChild);
    $root->appendWellBalancedChunk('<g/>text<h i="j"/>');
    return $doc;
}

sub change {
    my ($doc) = @_;
    my $root = $doc->documentElement;
    my ($first, $second) = $root->childNodes;
    my $away = $root->removeChild($first);
    $root->insertAfter($away, $second);
    $root->replaceChild($doc->createElement('new'), $second);
    $second->appendChild($doc->createTextNode('loose'));
    my $copy = $root->cloneNode(1);
    $copy->removeChildNodes;
    my $lone = XML::LibXML::Element->new('lone');
    $lone->setAttributeNode(XML::LibXML::Attr->new('k', 'v'));
    $doc->adoptNode($lone);
    $root->addChild($lone);
    my $other = build();
    my $taken = $doc->importNode($other->documentElement->lastChild);
    $root->appendChild($taken);
    my $moved = $other->documentElement->firstChild;
    $root->appendChild($moved);
    $root->removeAttribute('none');
    $lone->removeAttribute('k');
    $lone->unbindNode;
    return $away;
}

sub search {
    my ($doc) = @_;
    my $context = XML::LibXML::XPathContext->new($doc);
    $context->registerNs(y => 'urn:x');
    $context->registerFunction(own => sub { $_[0] . '!' });
    $context->registerVarLookupFunc(sub { XML::LibXML::Literal->new('v') }, undef);
    my @found = $context->findnodes('//y:*');
    $context->setContextNode($found[0]) if @found;
    $context->findvalue('own(string(.))');
    $context->find('$var');
    $context->findnodes('..');
    my $xpath = XML::LibXML::XPathExpression->new('//b');
    $doc->findnodes($xpath);
    $doc->exists('//none');
    eval { $doc->findnodes('//[') };
    $_->nodePath for $doc->findnodes('//@*');
    my $list = $doc->getElementsByTagName('b');
    $list->get_node(1);
    return $list;
}

for my $round (1 .. 4) {
    my $parser = XML::LibXML->new(no_blanks => 1);
    my $doc = $parser->parse_string($text);
    my $list = search($doc);
    my $away = change($doc);
    $doc->documentElement->normalize;
    undef $doc;
    $away->toString;
    my $made = build();
    my $inner = $made->documentElement->lastChild;
    search($made);
    undef $made;
    $inner->parentNode->toString if $inner->parentNode;
    eval { $parser->parse_string('<a><b></a>') };
    $parser->parse_chunk('<p><q>');
    $parser->parse_chunk('</q></p>', 1);
    my $balanced = $parser->parse_balanced_chunk('<r/><s/>');
    $balanced->firstChild->unbindNode;
    my $dtd = XML::LibXML::Dtd->parse_string('<!ELEMENT a (b)*><!ELEMENT b (#PCDATA)>');
    my $with = $parser->parse_string('<!DOCTYPE a [<!ELEMENT a (b)*><!ELEMENT b (#PCDATA)>]><a><b>x</b></a>');
    $with->is_valid($dtd);
    my $inside = $with->internalSubset;
    $with->removeInternalSubset;
    $with->setInternalSubset($inside);
    my $schema = XML::LibXML::Schema->new(string => '<schema xmlns="http://www.w3.org/2001/XMLSchema"><element name="a"/></schema>');
    eval { $schema->validate($with) };
    my $clone = $with->cloneNode(1);
    my $pattern = XML::LibXML::Pattern->new('//b');
    $pattern->matchesNode($clone->documentElement);
    my $reader = XML::LibXML::Reader->new(string => $text);
    while ($reader->read) {
        my $node = $reader->name eq 'b' ? $reader->copyCurrentNode(1) : undef;
        $reader->preserveNode if $reader->name eq 'a';
    }
    my $whole = $reader->document;
}
