#!/usr/bin/env python3
"""Makes templates/expressions.json: small templates and what Jinja makes of them.

Needs jinja2==3.1.6. The environment is set up like that of Hugging Face's apply_chat_template: immutable sandbox,
trim_blocks, lstrip_blocks, loop controls, a `generation` tag, tojson = json.dumps without escapes, raise_exception,
strftime_now at a fixed time. An entry has "text", or "error" where Jinja fails.
Usage: make_template_expressions.py OUT.json"""
import copy, datetime, itertools, json, random, sys, zlib
import jinja2, jinja2.ext, jinja2.nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

assert jinja2.__version__ == "3.1.6", jinja2.__version__


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _body(self, context, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: datetime.datetime(2025, 1, 2, 3, 4, 5).strftime(f)
    return env


CONTEXT = {
    "s": "Hello World", "u": "Zażółć 你好 😀", "e": "", "pad": "  x y  ", "i": 7, "neg": -3, "z": 0, "f": 2.5, "big": 18446744073709551615,
    "t": True, "n": None, "xs": [3, 1, 2], "words": ["b", "A", "c", "a"], "empty": [], "m": {"b": 1, "a": [1, 2], "C": None, "items": "key"},
    "people": [{"name": "Ann", "age": 30, "city": "Rom"}, {"name": "bob", "age": 5, "city": "Bonn"}, {"name": "Cy", "age": 30, "city": "rom"}],
    "nested": {"a": {"b": {"c": [10, {"d": "deep"}]}}}, "html": "<a href='x'>\"&\"</a>", "lines": "one\n\n two\nthree\n",
    "tool": {"q": "<é & 'b'>", "n": 1.0, "t": True, "z": None, "f": 1e20, "l": [], "o": {}},
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}, {"role": "user", "content": "{{ 1 }}"}],
}
ATOMS = ["s", "u", "e", "i", "neg", "z", "f", "big", "t", "n", "xs", "empty", "m", "words", "missing", "'a'", "1", "-2", "1.5", "(1, 2)", "[1, 'x']", "{'k': 1}", "range(3)", "false"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]
FILTERS = """abs capitalize center(20) count default('d') default('d',true) dictsort escape first float forceescape int items|list join join(',') last length list lower
 max min reverse|list reverse round round(1) safe sort string sum title tojson trim unique|list upper urlencode wordcount e d('x') indent batch(2)|list slice(2)|list filesizeformat
 tojson(indent=2) tojson(ensure_ascii=true) map('string')|list select|list reject|list select('string')|list select('number')|list sort(reverse=true) truncate(5) items|list xmlattr
 format(1) replace('a','b') attr('x') groupby(0) map(attribute='name')|list selectattr('name')|list""".split()
TESTS = """defined undefined none boolean true false integer float number string mapping sequence iterable callable odd even lower upper escaped divisibleby(3)
 eq(7) ne(7) gt(1) ge(7) lt(1) le(7) in([7,'a']) sameas(none) equalto('a')""".split()
STRINGS = ["s", "u", "e", "pad", "lines", "html", "'aXbXc'", "'ünï-cödé ß'", "'123'", "'-42'", "'3.5'", "'ABC'", "'abc def'", "'a\\tb\\nc'", "'Title Case'", "'x'|safe"]
METHODS = """upper() lower() capitalize() title() swapcase() casefold() strip() lstrip() rstrip() strip('Hdx ') lstrip('aX') rstrip('cX') split() split('X') split(' ',1) split(None,1) rsplit() rsplit(' ',1)
 rsplit('X',1) splitlines() splitlines(true) join(['1','2']) join('ab') replace('X','--') replace('l','L',1) replace('','.') startswith('a') startswith(('a','H')) endswith('c') endswith(('x','d'),1) find('l')
 find('l',4) find('l',4,6) rfind('l') index('l') rindex('o') count('l') count('') isdigit() isalpha() isalnum() isspace() isupper() islower() istitle() isnumeric() isdecimal() isidentifier() isascii()
 isprintable() center(15) center(16,'*') ljust(14,'.') rjust(14) zfill(14) removeprefix('a') removesuffix('c') partition('X') rpartition('X') partition('zz') rpartition('zz') expandtabs() expandtabs(4) format(1) find() nope""".split()
SLICES = ["0", "-1", "1", "100", "-100", "1:", ":1", ":-1", "::2", "::-1", "1:3", "3:1", "-3:-1", "3:0:-1", "-1:-4:-2", ":", "5:100", "::0", "'x'", "1.5", "none", "1:none", "'a':"]
OTHER = [
    # numbers
    "{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 00 }} {{ 1_0.2_5 }}", "{{ 007 }}", "{{ 1e400 }}", "{{ 0.1 + 0.2 }}", "{{ 1e16 }} {{ 1e15 }} {{ 123456789012345678.0 }}",
    "{{ 1e-5 }} {{ 0.0001 }} {{ -0.0 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}", "{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }}",
    "{{ -2 ** 2 }}", "{{ 1 if 2 > 1 > 0 else 0 }} {{ 1 < 2 < 2 }}", "{{ 3 - -2 }} {{ - 3 }} {{ +3 }} {{ -xs|first }} {{ -3|abs }} {{ (-3)|abs }}", "{{ 1.0 == 1 }} {{ true == 1 }} {{ '1' == 1 }} {{ none == false }}",
    "{{ 42.55|round }} {{ 42.55|round(1, 'floor') }} {{ 42.55|round(1,'ceil') }} {{ 2.5|round }} {{ 3.5|round }} {{ 1234|round(-2) }} {{ 1250|round(-2) }} {{ 1350|round(-2) }} {{ 0.5|round|int }} {{ 1.005|round(2) }} {{ 7|round(2) }} {{ 7|round(1,'floor') }}",
    "{{ 1234.5|round(-2) }} {{ 1e300|round(2) }} {{ 1.5|round(400) }} {{ 2|round(0,'nope') }}", "{{ '42.23'|int }} {{ '0x1F'|int(0,16) }} {{ 'x'|int(9) }} {{ '1_0'|int }} {{ ' 7 '|int }} {{ '1e3'|int }} {{ none|int }} {{ ''|int(5) }} {{ 'ff'|int(base=16) }} {{ '0b11'|int(base=0) }}",
    "{{ '1.5'|float }} {{ 'inf'|float }} {{ 'nan'|float }} {{ 'x'|float(2.5) }} {{ '1_0.5'|float }} {{ none|float }} {{ [1]|float }}", "{{ 1000|filesizeformat }} {{ 1|filesizeformat }} {{ 0|filesizeformat }} {{ 123456789|filesizeformat }} {{ 123456789|filesizeformat(true) }} {{ 1.5e30|filesizeformat }}",
    # strings
    r"{{ 'a\n\t\\\'\"\x41\u00e9\101\q\/' }}", r"{{ '\U0001F600' }}", r"{{ '\x4' }}", r"{{ 'é\é' }}", "{{ 'a' 'b' \"c\" }}", "{{ 'multi\nline' }}", r"{{ ['it\'s', 'say \"x\"', 'both \' and \"', 'a\\b', '\x07\x7f\u200b\u00e9😀'] }}", "{{ 'a' * 3 }} {{ 3 * 'ab' }} {{ 'a' * 0 }} {{ 'a' * -1 }} {{ [1] * 2 }} {{ (1,) * 2 }}",
    "{{ 'x' in 'xyz' }} {{ '' in 'a' }} {{ 1 in [1.0] }} {{ 'a' in {'a': 1} }} {{ (1,2) in [(1,2)] }} {{ 3 in range(5) }} {{ 5 in range(0,10,2) }} {{ 'b' in m.keys() }} {{ 1 in m.values() }} {{ ('b', 1) in m.items() }}", "{{ 1 in 'abc' }}", "{{ 'a' in 5 }}", "{{ missing in 'abc' }}", "{{ 'a' in missing }}", "{{ [] in {} }}",
    "{{ 'a' < 'b' }} {{ 'a' < 'é' }} {{ [1,2] < [1,3] }} {{ (1,) < (1,2) }} {{ 1 < 1.5 }} {{ true < 2 }}", "{{ 'a' < 1 }}", "{{ none < 1 }}", "{{ {} < {} }}",
    # printf
    "{{ '%s|%5s|%-5s|%.2s' % ('a','b','c','defg') }}", "{{ '%d|%5d|%-5d|%05d|%+d|% d|%i' % (1,2,3,4,5,6,7) }}", "{{ '%x|%X|%#x|%o|%#o|%c|%c' % (255,255,255,8,8,65,'z') }}", "{{ '%f|%.2f|%8.3f|%-8.1f|%08.2f|%e|%.3E|%g|%G' % (1.5,2.345,3.14159,4.5,-5.5,12345.678,0.00012,1e10,0.0001) }}", "{{ '%s' % [1] }} {{ '%s' % none }} {{ '%r|%a' % ('é','é') }} {{ '%%' % () }} {{ '%d%%' % 5 }}",
    "{{ '%(a)s-%(b)05.1f' % {'a': 1, 'b': 2} }}", "{{ '%s' % (1,2) }}", "{{ '%s %s' % 1 }}", "{{ '%d' % 'x' }}", "{{ '%q' % 1 }}", "{{ 'abc' % 1 }}", "{{ 'abc' % {} }}", "{{ '%*d|%.*f' % (5, 1, 2, 3.14159) }}", "{{ '%d|%d' % (3.9, true) }}", "{{ '%5%|' % () }}", "{{ '%.3d|%+.3d|%8.3d|%#.4x' % (5,5,5,255) }}", "{{ '%s'|format('x') }} {{ '%(a)s'|format(a=1) }}", "{{ '%s' % missing }}", "{{ '%d' % missing }}", "{{ '%g|%g|%g|%g' % (100000, 1000000, 0.0001, 0.00001) }}", "{{ '%.0f|%.0f|%.1f' % (0.5, 1.5, 0.25) }}", "{{ '%s' % 1.0 }} {{ '%5.1f|' % 1e20 }}", "{{ '%' % 1 }}", "{{ '%(a' % {} }}",
    # format
    "{{ '{} {}'.format(1,'a') }} {{ '{1} {0}'.format(1,2) }} {{ '{a} {b}'.format(a=1,b=2) }} {{ '{{}}'.format() }}", "{{ '{:>5}|{:<5}|{:^5}|{:*^7}|{:05}'.format('a','b','c','d',7) }}", "{{ '{:.2f} {:8.3f} {:e} {:g} {:%} {:,} {:_} {:n}'.format(1.234,2.5,3.0,4.0,0.5,1234567,1234567,5) }}", "{{ '{:b} {:o} {:x} {:X} {:#x} {:#b} {:+d} {: d} {:c}'.format(5,8,255,255,255,5,3,3,65) }}", "{{ '{!r} {!s} {!a}'.format('é','é','é') }}", "{{ '{0.name}'.format(people[0]) }}", "{{ '{0[name]} {1[0]}'.format(people[0], xs) }}",
    "{{ '{:{}}|'.format('a', 5) }} {{ '{:{w}.{p}f}'.format(3.14159, w=8, p=2) }}", "{{ '{} {0}'.format(1) }}", "{{ '{}'.format() }}", "{{ '{'.format() }}", "{{ '}'.format() }}", "{{ '{x}'.format() }}", "{{ '{:d}'.format('a') }}", "{{ '{:5}|{:5}|{}'.format(1.5, true, none) }}", "{{ '{:.3}|{:.3}|{:.3}|{:.10}'.format(123.0, 1234.0, 'abcdef', 123.0) }}", "{{ '{:,.2f}|{:012,d}|{:=+8d}|{:08.2f}'.format(1234567.891, 1234567, 42, -3.14159) }}", "{{ '{0.__class__}'.format(1) }}", "{{ '{a}'.format_map({'a': 3}) }}", "{{ '{:s}'.format(5) }}", "{{ '{:x}'.format(1.5) }}", "{{ '{}'.format([1,'a']) }} {{ '{:>10}'.format([1]) }}", "{{ '{:0>4}|{:<04}|{:^+7.1f}'.format(7, 7, 2.25) }}", "{{ '{:.1}|{:.2g}|{:.0e}'.format(0.00001, 12345.0, 15.0) }}",
    # containers
    "{{ [1, 'a', none, true, 1.0, [2], (3,), {'k': 'v'}] }}", "{{ () }} {{ (1,) }} {{ (1, 2) }} {{ [] }} {{ {} }}", "{{ {'a': 1, 'b': {'c': []}, 1: 2, none: 3, true: 4} }}", "{{ {'a': 1, 'a': 2} }}", "{{ {[]: 1} }}", "{{ m['items'] }} {{ m.b }} {{ m.get('b') }} {{ m.get('x') }} {{ m.get('x', 'dflt') }}", "{{ m.items()|list }} {{ m.keys()|list }} {{ m.values()|list }}", "{{ m.keys() }} {{ m.items() }} {{ m.values() }}", "{{ m|list }} {{ m|length }} {{ m.copy() }}", "{{ m|dictsort }} {{ m|dictsort(true) }} {{ m|dictsort(reverse=true) }}", "{{ {'b':2,'a':10}|dictsort(by='value') }}", "{{ m|dictsort(by='x') }}",
    "{{ nested.a.b.c[1].d }} {{ nested['a']['b'].c.0 }} {{ nested.a.x }} {{ nested.x.y }}", "{{ nested.a.x is defined }} {{ nested.a.b is defined }}", "{{ xs[0] }} {{ xs[-1] }} {{ xs[9] }} {{ xs['a'] }} {{ xs.0 }} {{ xs[true] }}", "{{ xs.count(1) }} {{ xs.index(2) }} {{ (1,2,1).count(1) }} {{ xs.copy() }}", "{{ xs.index(99) }}", "{{ xs.append(1) }}", "{{ m.update({}) }}", "{{ m.pop('a') }}", "{{ xs.sort() }}", "{{ xs.append }}|{{ xs.append is defined }}", "{{ xs + [4] }} {{ (1,) + (2,) }}", "{{ xs + (1,) }}", "{{ dict(a=1, b=2) }} {{ dict([('a', 1)]) }} {{ dict({'x': 1}, y=2) }}", "{{ range(5)|list }} {{ range(2,5)|list }} {{ range(10,0,-3)|list }} {{ range(3) }} {{ range(1,7,2) }} {{ range(10)[2:5] }} {{ range(10)[-1] }} {{ range(3)|length }}", "{{ range(0) == range(1,1) }} {{ range(3) == range(0,3) }}", "{{ range(100001) }}", "{{ range(1,2,0) }}", "{{ range('a') }}", "{{ range() }}",
    "{{ 'abc'|list }} {{ u|list }} {{ u|length }} {{ u[7:9] }} {{ u[-1] }} {{ u|reverse }} {{ u.find('😀') }} {{ u.center(20, '·') }}", "{{ (xs|sort)[0] }} {{ xs|sort(reverse=true)|join }} {{ words|sort }} {{ words|sort(case_sensitive=true) }} {{ words|unique|list }}", "{{ ['A','a','B']|unique|list }} {{ ['A','a','B']|unique(true)|list }} {{ [1,1.0,true,'1']|unique|list }}", "{{ people|sort(attribute='age,name')|map(attribute='name')|join(' ') }}", "{{ people|sort(attribute='name')|map(attribute='name')|join(' ') }}", "{{ people|groupby('city')|list|length }}{% for g in people|groupby('city') %}[{{ g.grouper }}:{{ g.list|length }}]{% endfor %}", "{% for c, p in people|groupby('city', case_sensitive=true) %}{{ c }}={{ p|map(attribute='name')|list }};{% endfor %}", "{{ people|groupby('zip', default='none') }}", "{{ people|map(attribute='zip', default='?')|list }} {{ people|map(attribute='zip')|list }}", "{{ words|map('upper')|join }} {{ words|map('replace','a','_')|list }} {{ xs|map('string')|list }}",
    "{{ people|selectattr('age','eq',30)|map(attribute='name')|list }} {{ people|rejectattr('age','gt',10)|map(attribute='name')|list }} {{ people|selectattr('name')|list|length }} {{ people|selectattr('zip','defined')|list }}", "{{ xs|select('odd')|list }} {{ xs|reject('odd')|list }} {{ xs|select('>', 1)|list }} {{ xs|select('in', [1,2])|list }} {{ [0,1,'']|select|list }}", "{{ xs|select('nope')|list }}", "{{ xs|map('nope')|list }}", "{{ xs|map }}", "{{ xs|map|list }}", "{% if xs|select('string') %}truthy{% endif %}", "{{ xs|select('odd')|length }}", "{{ xs|select('odd')|first }} {{ (xs|select('odd')|list)[0] }}", "{% set g = xs|map('string') %}{{ g|join }}-{{ g|join }}", "{{ xs|sum }} {{ people|sum(attribute='age') }} {{ [1,2.5]|sum(start=10) }} {{ [[1],[2]]|sum(start=[]) }}", "{{ words|sum }}", "{{ xs|min }} {{ xs|max }} {{ words|min }} {{ words|max }} {{ []|min }} {{ people|max(attribute='age') }}", "{{ [1,'a']|max }}", "{{ xs|first }} {{ xs|last }} {{ []|first }} {{ []|last }} {{ 'abc'|first }} {{ 'abc'|last }} {{ m|first }} {{ m|last }}", "{{ 5|first }}", "{{ none|first }}", "{{ [1,2,3,4,5]|batch(2)|list }} {{ [1,2,3]|batch(2,'x')|list }} {{ [1,2,3,4,5]|slice(3)|list }} {{ [1,2,3,4,5]|slice(3,'x')|list }}", "{{ [3,1]|reverse|list }} {{ 'abc'|reverse }} {{ xs|reverse }}", "{{ missing|list }} {{ missing|join }} {{ missing|length }} {{ missing|default('d') }} {{ missing|string }} {{ missing|upper }} {{ missing|first }} {{ missing|items|list }}", "{{ missing|int }}", "{{ missing|abs }}", "{{ missing + 1 }}", "{{ missing.x }}", "{{ missing['x'] }}", "{{ missing() }}", "{{ missing ~ 'x' }} {{ missing == missing2 }} {{ not missing }} {{ missing or 'o' }} {{ missing and 1 }}", "{{ missing|tojson }}", "{{ missing < 1 }}", "{{ -missing }}", "{{ missing|sort }} {{ missing|unique|list }}", "{{ missing|reverse }}", "{{ missing|last }}", "{{ missing[1:] }}", "{{ none.x }}|{{ none['x'] }}|{{ i.x }}", "{{ none.x.y }}", "{{ none|upper }} {{ none|trim }} {{ none|list }}",
    # tojson
    "{{ tool|tojson }}", "{{ tool|tojson(indent=2) }}", "{{ tool|tojson(indent=4) }}", "{{ tool|tojson(ensure_ascii=true) }}", "{{ tool|tojson(sort_keys=true) }}", "{{ tool|tojson(separators=(',',':')) }}", "{{ tool|tojson(true) }}", "{{ u|tojson }} {{ u|tojson(ensure_ascii=true) }}", r"{{ 'a\"b\\c/d\n\r\t\x08\x0c\x01\x7f\u2028' | tojson }}", r"{{ '\x7f\u2028é' | tojson(ensure_ascii=true) }}", "{{ [1, 1.5, 1e20, 1e-7, 1e16, -0.0, true, none, 'x', (1,2), {}] | tojson }}", "{{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }}", "{{ {(1,2): 3} | tojson }}", "{{ range(3) | tojson }}", "{{ xs|map('string') | tojson }}", "{{ [] | tojson(indent=2) }} {{ {} | tojson(indent=2) }} {{ [[],[1]] | tojson(indent=1) }}", "{{ [1,{'a':[2]}] | tojson(indent='--') }}", "{{ [1] | tojson(indent=0) }}", "{{ [1] | tojson(indent=-1) }}", "{{ 'nan'|float|tojson }} {{ 'inf'|float|tojson }}", "{{ big|tojson }} {{ big + 1 }}", "{{ html|tojson }} {{ html|tojson|safe }} {{ 'x' | tojson | upper }}", "{{ m.items() | tojson }}", "{{ namespace(a=1) | tojson }}", "{{ ('<'|safe)|tojson }}",
    # markup
    "{{ html|e }}", "{{ html|escape|escape }} {{ html|e|forceescape }}", "{{ '<'|safe + '<' }}|{{ '<' + '<'|safe }}|{{ '<'|safe ~ '<' }}|{{ '<'|e ~ '<' }}", "{{ ('<'|safe) * 2 }}", "{{ ('%s'|safe) % '<' }} {{ ('%s'|safe) % ('<'|safe) }} {{ ('%d'|safe) % 5 }}", "{{ ['<'|safe] }}", "{{ ('<b>'|safe).upper() + '<' }}", "{{ ('{}'|safe).format('<') }}", "{{ ('-'|safe).join(['<', '>'|safe]) }}", "{{ ['<', '>'|e]|join('&') }}", "{{ ('a<b'|safe)|replace('a','<') }}", "{{ ('a<b'|safe)[1:] + '<' }}", "{{ ('x'|safe) is escaped }} {{ 'x' is escaped }} {{ ('x'|safe) is string }} {{ ('x'|safe) == 'x' }}",
    # conditionals and tests
    "{{ 'a' if true }}|{{ 'a' if false }}|{{ 'a' if false else 'b' if false else 'c' }}", "{{ ('a' if false) is defined }}", "{{ ('a' if false).x }}", "{{ 1 and 2 }} {{ 0 and 2 }} {{ 0 or 'x' }} {{ '' or none }} {{ not 0 }} {{ not not 'a' }} {{ not 1 == 2 }}", "{{ 1 is odd }} {{ 2 is even }} {{ 6 is divisibleby 3 }} {{ 6 is divisibleby(4) }} {{ 'a' is string }} {{ 1 is not string }} {{ not 1 is string }}", "{{ 1 is number is string }}", "{{ x is defined and x }} {{ missing is not defined or missing.y }}", "{{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }} {{ 'nope' is test }}", "{{ 1 is nope }}", "{{ 1|nope }}", "{% if false %}{{ 1|nope }}{% endif %}ok", "{% if true %}{{ 1|nope }}{% endif %}", "{{ 1|nope if false else 2 }}", "{% if false %}{% for x in [] %}{{ 1|nope }}{% endfor %}{% endif %}", "{% for x in [] %}{{ 1|nope }}{% endfor %}", "{% if 1|nope %}{% endif %}", "{{ 1 is sameas 1 }} {{ true is sameas true }} {{ none is sameas none }} {{ [] is sameas [] }} {{ m is sameas m }}", "{{ 1 is in [1,2] }} {{ 'a' is in 'abc' }} {{ 1 is not in [2] }}", "{{ 5 is gt 3 }} {{ 5 is lessthan 3 }} {{ 5 is eq 5 }} {{ 5 is ge(5) }} {{ 'a' is lower }} {{ 'A' is upper }} {{ 'aB' is lower }}", "{{ loop is defined }} {{ range is callable }} {{ namespace is callable }} {{ 'x'.upper is callable }}", "{{ true }} {{ True }} {{ none }} {{ None }} {{ false }} {{ False }} {{ TRUE }}", "{{ (1 if none else 2) + 3 }}",
    # default, indent, others
    "{{ ''|default('x') }}|{{ ''|default('x', true) }}|{{ none|default('x') }}|{{ none|d('x', boolean=true) }}|{{ missing|default }}", "{{ lines|indent }}", "{{ lines|indent(2, true) }}", "{{ lines|indent(width=3, blank=true) }}", "{{ lines|indent('> ', first=true, blank=true) }}", "{{ ''|indent(2,true) }}|{{ 'a'|indent }}", "{{ 5|indent }}", "{{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, True) }} {{ 'foo bar baz qux'|truncate(11) }} {{ 'foo bar baz qux'|truncate(11, False, '...', 0) }}", "{{ 'x'|truncate(1) }}", "{{ 'hello world-foo (bar) [baz]'|title }} {{ \"it's\"|title }} {{ \"it's\".title() }} {{ 'ǆ'|title }} {{ 'ß'|upper }} {{ 'ΑΣ'|lower }} {{ 'İ'|lower }}", "{{ 'a b/c?d=é&x'|urlencode }} {{ {'a b': 'c/d', 'e': 1}|urlencode }} {{ [('x', 'y z')]|urlencode }}", "{{ {'class': 'a<b', 'id': none, 'n': 1}|xmlattr }}", "{{ {'a b': 1}|xmlattr }}", "{{ 'a, b c_d é'|wordcount }}", "{{ 'xxabcxx'|trim('x') }} {{ '  a '|trim }}| {{ ' \u3000a\x85'|trim }}|", "{{ 'aaa'|replace('a','b',2) }} {{ 123|replace('2','x') }} {{ 'abc'|replace('','-') }}", "{{ 'ab'|center(7) }}|{{ 'abc'|center(6) }}|", "{{ m|attr('b') }}|{{ m|attr('items') is callable }}|{{ s|attr('upper')() }}", "{{ people[0]|items|list }} {{ [1]|items|list }}", "{{ [1]|items|list }}", "{{ s|string|upper|lower|title|trim|length }}",
    "{{ strftime_now('%Y-%m-%d %H:%M:%S %a %A %b %B %y %j %p %I %% %e %U %W %V %G %u %w %c %x %X %f %D %F %T %R %n%t|%Z|%z') }}", "{{ strftime_now('%-d %_d %-m %^a %#p %10Y') }}", "{{ strftime_now() }}", "{{ strftime_now(1) }}", "{{ raise_exception('boom') }}", "{{ raise_exception() }}",
    # statements
    "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set (a, b), c = (1, 2), 3 %}{{ a }}{{ b }}{{ c }}", "{% set a, b = [1] %}", "{% set a, b = [1,2,3] %}", "{% set a, b = 5 %}", "{% set x %}a{{ 1 }}b{% endset %}[{{ x }}]", "{% set x | upper | replace('A','-') %}a{{ 1 }}b{% endset %}[{{ x }}]", "{% set x = 1, %}{{ x }}", "{% set x.y = 1 %}", "{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{% set ns.b = 'n' %}{{ ns.a }}{{ ns.b }}{{ ns.c }}|{{ ns }}", "{% set m.b = 2 %}", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns['b'] }}", "{% set ns = namespace() %}{% for x in xs %}{% set ns.last = x %}{% endfor %}{{ ns.last }}", "{% set y = 0 %}{% for x in xs %}{% set y = y + x %}{{ y }}{% endfor %}{{ y }}", "{% if true %}{% set y = 5 %}{% endif %}{{ y }}", "{% for x in xs %}{% endfor %}{{ x }}|{{ loop }}", "{% set true = 1 %}", "{% set ns = namespace(n=0) %}{% for a in [1,2] %}{% for b in [1,2] %}{% set ns.n = ns.n + 1 %}{% endfor %}{% endfor %}{{ ns.n }}", "{% set a, ns.x = 1, 2 %}", "{% set ns = namespace() %}{% set ns.x, ns.y = 1, 2 %}{{ ns.x }}{{ ns.y }}",
    "{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}", "{% for x in [] %}x{% else %}none{% endfor %}", "{% for x in xs if x > 1 %}{{ loop.index }}:{{ x }}:{{ loop.last }}:{{ loop.length }} {% else %}e{% endfor %}", "{% for x in xs if x > 9 %}{{ x }}{% else %}e{% endfor %}", "{% for k, v in m.items() %}{{ k }}={{ v }},{% endfor %}", "{% for k in m %}{{ k }}{% endfor %}", "{% for a, b in [(1,2),[3,4],'xy'] %}{{ a }}{{ b }} {% endfor %}", "{% for a, b in [1] %}{% endfor %}", "{% for c in 'añ' %}{{ c }}.{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for x in none %}{% endfor %}", "{% for x in missing %}x{% else %}e{% endfor %}", "{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}!", "{% break %}", "{% for x in xs %}{% for y in xs %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}|{% endfor %}", "{% for x in [] %}{% else %}{% break %}{% endfor %}", "{% for a in [1,2] %}{% for x in [] %}{% else %}{{ a }}{% break %}{% endfor %}z{% endfor %}", "{% for x in xs %}{{ loop.cycle('a','b') }}{{ loop.changed(x > 1) }} {% endfor %}", "{% for x in xs %}{% set outer = loop %}{% for y in [1] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}", "{% for x in [[1,[2,[3]]],[4]] recursive %}{% if x is iterable %}<{{ loop(x) }}>{% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}", "{% for x in xs %}{{ loop(x) }}{% endfor %}", "{% for x in xs|map('string') %}{{ x }}{{ loop.last }}{% endfor %}", "{% for x in range(3) %}{{ x }}{{ ',' if not loop.last }}{% endfor %}", "{% for x in xs %}{{ loop.nope }}{% endfor %}", "{% for x in xs: %}{{ x }}{% endfor %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in xs %}{% set x = 9 %}{{ x }}{% endfor %}", "{% for x in xs %}{% endfo %}", "{% for %}{% endfor %}", "{% for x in xs %}{{ loop }}{% endfor %}", "{% for x in xs %}{{ loop|length }}{% endfor %}", "{% for message in messages %}{{ message['role'] + ': ' + message.content }}{{ '\\n' }}{% endfor %}", "{% for x in xs %}{% for y in xs %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}", "{% for m in messages[1:] %}{{ m.role }}{% endfor %}{{ messages[-1].content }}{{ messages[-1]['nope'] }}", "{% for x in m.items() if x[0] != 'a' %}{{ x }}{% endfor %}", "{% for x in xs %}{{ x }}{% if loop.previtem is defined and loop.previtem > x %}<{% endif %}{% endfor %}",
    "{% if 1 %}a{% elif 2 %}b{% else %}c{% endif %}{% if 0 %}a{% elif 2 %}b{% else %}c{% endif %}{% if 0 %}a{% elif '' %}b{% else %}c{% endif %}", "{% if %}{% endif %}", "{% if 1 %}", "{% endif %}", "{% if 1 %}{% endfor %}", "{% if 1, %}x{% endif %}", "{% if 1: %}x{% endif %}", "{% nope %}", "{% %}", "{{ }}", "{{", "{%", "{{ 'a }}", "{{ 1 + }}", "{{ (1 }}", "{{ 1) }}", "{{ [1, }}", "{{ a b }}", "{{ a.}}", "{{ 'a'..b }}", "{{ $ }}", "{{ a ? b }}", "{{ f(a=1, 2) }}", "{{ f(*xs, **m) }}", "{{ f(**m, *xs) }}", "{{ 1 is }}", "{{ 1 | }}", "{{ {'a' 1} }}", "{{ {1} }}", "{{ a = 1 }}", "{% set 1 = 2 %}", "{% set x %}", "{{ 1 }", "{{ {1: 2}[1] }}", "{{ {'a': {'b': 1}} }}", "{{ {'a':1}}}", "{{ [[1]]}}",
    "{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(1, c='z') }} {{ f(b=1, a=2) }} {{ f() }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, b=2) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, a=2) }}", "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}", "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}", "{% macro f(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ f() }}", "{% macro f(a) %}{{ a.x }}{% endmacro %}{{ f() }}", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}body{% endcall %}", "{% macro f() %}<{{ caller(1, 2) }}>{% endmacro %}{% call(a, b) f() %}{{ a }}-{{ b }}{% endcall %}", "{% macro f() %}x{% endmacro %}{% call f() %}body{% endcall %}", "{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}", "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}", "{% set x = 1 %}{% macro f() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ f() }}", "{% for x in xs %}{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% endfor %}", "{% macro f(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ f(1) }}{{ y }}", "{% macro f(a, b=1, c) %}{% endmacro %}", "{% macro f %}{% endmacro %}", "{% macro f(a, a) %}{% endmacro %}", "{% macro f(a, b) %}{{ kwargs }}{% endmacro %}{{ f.name }} {{ f.arguments }} {{ f.catch_kwargs }} {{ f.catch_varargs }} {{ f.caller }} {{ f }}", "{% macro f() %}<{% endmacro %}{{ f()|e }} {{ f() is string }} {{ f()|upper }}", "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(*[1]) }} {{ f(**{'x': 2}) }}", "{% macro f(x) %}{% for i in range(x) %}{{ i }}{% endfor %}{% endmacro %}{{ f(3) }}", "{% macro f(x, y) %}{{ x }}{{ y }}{% endmacro %}{% macro g(z) %}{{ f(z, caller=1) }}{% endmacro %}{{ g(1) }}", "{% call 1 %}{% endcall %}", "{% macro kw(a, **k) %}{% endmacro %}", "{% macro f(caller) %}{{ caller() }}{% endmacro %}{% call f() %}x{% endcall %}", "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}", "{% macro f(l) %}{% for x in l %}{% if x is iterable and x is not string %}[{{ f(x) }}]{% else %}{{ x }}{% endif %}{% endfor %}{% endmacro %}{{ f([1,[2,'a',[3]]]) }}",
    "{% filter upper %}a{{ s }}b{% endfilter %}", "{% filter replace('a','b')|upper %}aa{% endfilter %}", "{% filter nope %}{% endfilter %}", "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}", "{% set a = 5 %}{% with a = 1, b = a %}{{ b }}{% endwith %}", "{% block x %}a{{ s }}{% endblock %}", "{% block x %}a{% endblock x %}{% set q = 1 %}{% block y %}{{ q }}{% endblock %}", "{% block x %}{% endblock %}{% block x %}{% endblock %}", "{% for x in [1] %}{% block b %}{{ x }}{% endblock %}{% endfor %}", "{% for x in [1] %}{% block b scoped %}{{ x }}{% endblock %}{% endfor %}", "{% generation %}a{{ s }}{% endgeneration %}", "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q }}", "{% for x in xs %}{% generation %}{% break %}{% endgeneration %}{% endfor %}", "{% for x in xs %}{%- generation -%} {{ x }} {%- endgeneration -%}{% endfor %}", "{% autoescape false %}{{ '<' }}{% endautoescape %}", "{% print 1 %}", "{% include 'x' %}", "{% extends 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}", "{% if false %}{% include 'x' %}{% endif %}ok", "{% raw %}{{ x }}{% if %}{% endraw %}", "{% raw -%}  a  {%- endraw %}", "{%- raw %} {{ {%- endraw -%} b", "a {%- raw -%} \n {% x %} \n {%- endraw -%} \n b", "{% raw %}\nx\n{% endraw %}\ny", "  {% raw %}  \n  x\n  {% endraw %}\ny", "{# {{ x }} #}a{#- b -#} c", "{##}{#-#} {#+ x +#}\na", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.next() }}", "{% set j = joiner('|') %}{{ j() }}a{{ j() }}b{{ j() }}", "{{ joiner()() }}{% set j = joiner() %}{{ j() }}{{ j() }}", "{{ cycler() }}", "{{ s.upper()[0:2].lower() * 2 }}", "{{ ''.__class__ }}{{ ''.__class__.__mro__ }}", "{{ cycler.__init__.__globals__ }}", "{{ messages.append(1) }}", "{{ s.nope }}", "{{ s.nope() }}", "{{ s() }}", "{{ s.upper(1) }}", "{{ xs() }}", "{{ (1)() }}", "{{ [1,2,3][1:] + [4] }} {{ ([1,2] + [3])|length }}", "{{ 'abc'[1] }} {{ 'abc'[-1] }} {{ 'abc'[5] }} {{ 'abc'['x'] }} {{ (1,2)[1] }}", "{{ m['b'] }} {{ m['nope'] }} {{ m[1] }} {{ m[[]] }}", "{{ 1/0 }}", "{{ 1//0 }}", "{{ 1%0 }}", "{{ 1.0/0 }}", "{{ 0 ** -1 }}", "{{ 10 ** 30 }} {{ 2 ** 100 }}", "{{ [] + {} }}", "{{ {} + {} }}", "{{ 'a' - 'b' }}", "{{ 'a' + 1 }}", "{{ none + 1 }}", "{{ -'a' }}", "{{ +none }}", "{{ 'a' * 'b' }}", "{{ 'a' * 1.5 }}", "{{ true + true }} {{ -true }} {{ true / 2 }} {{ [1] * true }}", "{{ 1 ~ 2.0 ~ none ~ true ~ [1] ~ {'a': 1} }}", "{{ {'a': 1}['a'] }} {{ {'a': 1}.a }} {{ [1,2][0] }} {{ 'x'.upper() }} {{ ('x').upper() }} {{ 1.5.x }}", "{{ m.b.c }}", "{{ m.a.b }}", "{{ xs|join(', ')|upper }} {{ [none, true, 1.5, missing]|join('-') }} {{ people|join(',', attribute='name') }} {{ 5|join }}", "{{ 5|join }}", "{{ s|length }} {{ 5|length }}", "{{ foo(1) }}", "{{ xs|length > 2 and 'y' or 'n' }}", "{{ a.b.c }}", "{{ messages|map(attribute='content')|list }}", "{{ messages|selectattr('role', 'equalto', 'user')|list|length }}", "{{ messages|map(attribute='nope.x')|list }}", "{{ (messages|last).content }} {{ messages|last|attr('content') }}", "{{ [('a',1),('b',2)]|map('first')|join }} {{ [[1,2],[3]]|map('length')|list }} {{ [[1,2],[3]]|map('sum')|list }} {{ ['1','x']|map('int', default=7)|list }}", "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ ''.split() }} {{ ''.split(',') }} {{ 'abc'.split('') }}", "{{ 'abc'.split('') }}", "{{ 'a-b-c'.rsplit('-', 1)[0] }} {{ 'a-b-c'.split('-', maxsplit=1) }} {{ '</think>x'.split('</think>')[-1].lstrip('\\n') }}",
]
SPACE_PIECES = ["", " ", "\n", "  \n  ", "\n\n", "x", " x ", "\tx\n", "\r\n"]
SPACE_TAGS = ["{% if true %}", "{%- if true %}", "{% if true -%}", "{%- if true -%}", "{%+ if true %}", "{% if true +%}", "{{ 'v' }}", "{{- 'v' }}", "{{ 'v' -}}", "{{- 'v' -}}", "{# c #}", "{#- c #}", "{# c -#}", "{#+ c +#}", "{% raw %} r\n{% endraw %}", "{%- raw -%} r\n{%- endraw -%}"]


def templates():
    yield from OTHER
    for a, b in itertools.product(ATOMS, ATOMS):
        for op in BINARY:
            if "big" in (a, b) and op in ("*", "**"):
                continue  # grows without bound in Python
            if zlib_pick(a + op + b, 4):
                yield "{{ %s %s %s }}" % (a, op, b)
    for a in ATOMS + ["html", "tool", "people", "pad", "lines", "messages"]:
        for f in FILTERS:
            yield "{{ %s|%s }}" % (a if not a.startswith("-") else f"({a})", f)
        for t in TESTS:
            yield "{{ %s is %s }}" % (a if not a.startswith("-") else f"({a})", t)
    for a, m in itertools.product(STRINGS, METHODS):
        yield "{{ (%s).%s }}" % (a, m)
    for a, x in itertools.product(["s", "u", "xs", "(1,2,3,4,5)", "range(9)", "e", "m", "i"], SLICES):
        if a != "(1,2,3,4,5)" or "'a'" not in x:  # Jinja's constant folding hides that error
            yield "{{ %s[%s] }}" % (a, x)
    rnd = random.Random(5)
    for _ in range(500):
        n = rnd.randrange(1, 5)
        text, depth = rnd.choice(SPACE_PIECES), 0
        for _ in range(n):
            tag = rnd.choice(SPACE_TAGS)
            depth += " if" in tag
            text += tag + rnd.choice(SPACE_PIECES)
        for _ in range(depth):
            text += rnd.choice(["{% endif %}", "{%- endif %}", "{% endif -%}", "{%- endif -%}", "{%+ endif +%}"]) + rnd.choice(SPACE_PIECES)
        yield text


def zlib_pick(text, of):
    return zlib.crc32(text.encode()) % of == 0


def unsupported(template, text):
    """Text that shows an address of the host, or what is out of scope on purpose."""
    return " at 0x" in text or "<built-in" in text or "<bound method" in text or "<function" in text or "<class" in text


def main():
    env, entries, seen = environment(), [], set()
    for t in templates():
        if not t or t in seen or "__" in t:  # private attributes are refused earlier here than in Jinja
            continue
        seen.add(t)
        entry = {"template": t}
        try:
            text = env.from_string(t).render(**copy.deepcopy(CONTEXT))  # Jinja's `indent` changes a list that it is given
            if unsupported(t, text):
                continue
            text.encode()
            entry["text"] = text
        except RecursionError:
            continue
        except Exception as e:
            entry["error"] = f"{type(e).__name__}: {e}"
        entries.append(entry)
    with open(sys.argv[1], "w") as out:
        json.dump({"context": CONTEXT, "entries": entries}, out, ensure_ascii=False, indent=0)
    print(len(entries), "templates,", sum("error" in e for e in entries), "errors")


if __name__ == "__main__":
    main()
