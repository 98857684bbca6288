// SPDX-License-Identifier: GPL-2.0-only
// read_speedscope.js BUNDLE FILE: what speedscope itself reads in FILE, as JSON. BUNDLE is the script of its page, from its
// npm package; it runs up to where it would draw, in a context of its own. speedscope offers loading to pages that it is
// embedded in (window.speedscope.loadFileFromBase64), which tells the name of its importer.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const [bundle, file] = process.argv.slice(2);
const code = fs.readFileSync(bundle, 'utf8');
const importer = /loadFileFromBase64:\((\w+),(\w+)\)=>\{this\.loadProfile\(\(\)=>(\w+)\(\1,\2\)\)/.exec(code);
const drawing = code.indexOf('console.log(`speedscope v');
if (!importer || drawing < 0)
	throw new Error(`${bundle} is not the speedscope that this was written for`);

// whatever is asked of the page: nothing
const nothing = new Proxy(function () {}, {
	get: (_, key) => key === Symbol.toPrimitive ? () => '' : nothing,
	set: () => true,
	apply: () => nothing,
	construct: () => nothing,
});
const location = { hash: '', protocol: 'file:', href: 'file:///' };
const window = { location, localStorage: nothing, matchMedia: nothing, addEventListener() {}, devicePixelRatio: 1 };
const quiet = { log() {}, warn: console.error, error: console.error };
const page = {
	window, self: window, location, document: nothing, localStorage: nothing, navigator: { userAgent: '' }, console: quiet,
	HTMLElement: class {}, HTMLCanvasElement: class {}, requestAnimationFrame() {}, alert: console.error,
	performance, setTimeout, URL, TextDecoder, TextEncoder, atob, btoa,
};

// all of it is one line, which nobody wants to read on the terminal
function failed(error) {
	process.stderr.write(`${error.message}\n${String(error.stack).split('\n').filter((line) => /^ +at /.test(line)).join('\n')}\n`);
	process.exit(1);
}

try {
	vm.runInNewContext(`${code.slice(0, drawing)};globalThis.read=${importer[3]};return;${code.slice(drawing)}`, page);
} catch (error) {
	failed(error);
}

function described(profile) {
	const stack = [];
	const paths = {};
	let last = 0;
	const until = (value) => {
		const name = stack.join(';');
		if (value > last)
			paths[name] = (paths[name] || 0) + value - last;
		last = value;
	};
	profile.forEachCall((node, value) => {
		until(value);
		stack.push(node.frame.name);
	}, (_, value) => {
		until(value);
		stack.pop();
	});
	const frames = [];
	profile.forEachFrame((f) => frames.push({ name: f.name, file: f.file, line: f.line, self: f.getSelfWeight(), total: f.getTotalWeight() }));
	return { name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), paths, frames };
}

page.read(path.basename(file), fs.readFileSync(file).toString('base64')).then((group) => {
	if (!group)
		throw new Error(`speedscope does not know what ${file} is`);
	process.stdout.write(JSON.stringify({ name: group.name, shown: group.indexToView, profiles: group.profiles.map(described) }));
}).catch(failed);
