import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { generatedHtml, mutatedHtml, randomFrom, randomOf } from './generated-html.test-kit.ts'
import { messyHtml } from './messy-html.test-kit.ts'
import {
  assertSameTree,
  describeDifference,
  isSameTree,
  ourReading,
  shrink,
  theirReading,
} from './tree-oracle.test-kit.ts'

/** By chapter of the standard's "Parsing HTML documents". A title is the rule that its page is about. */
const CASES: Record<string, Record<string, string>> = {
  Markup: {
    'void elements have no content': '<p>a<br>b<img src=x>c</p><br/>d',
    'every void element':
      'a<area>b<base>c<embed>d<hr>e<input>f<link>g<meta>h<source>i<track>j<wbr>k<param>l<keygen>m<bgsound>n',
    'names in capitals': '<DIV Class=A>x</Div>',
    'unknown tags': '<x-a><x-b>1</x-a>2</x-b>',
    'letters beyond ASCII are not folded in names': '<X-É Ä=Ö>x</x-é>y</X-É>z<K\u212a>',
    'lonely signs': 'a < b <3 << > & < /p>',
    'a tag cut by the end of the page': 'a<b>c<d e="f',
    'a tag name cut by the end of the page': 'a<b>c<d',
    'an end tag cut by the end of the page': '<p>a</p',
    'an end tag with attributes cut by the end of the page': '<p>a</p x="',
    'a lone < at the end of the page': '<p>a<',
    'a lone </ at the end of the page': '<p>a</',
    '</> is nothing': '<p>a</>b',
    'an end tag without a name is a comment': '<p>a</ b>c</3>d</?e>',
    'an end tag with attributes and a slash': '<p>a</p class="x>"/>b',
    'a solidus closes no HTML element': '<div/>x<span/>y<br/>z',
    'a solidus between attributes': '<a/b/c=d/e/>x',
    'attribute oddities': `<a b c= d e ='f' g="h"i=j k=l/m =n / "o>p`,
    'attributes without a value before >': '<a b=>c<a b= >d<a b>e',
    'quotes inside of unquoted values': '<a b=c"d\'e`f=g<h>i',
    'a name that begins with an equals sign': '<a =b=c ==d>e',
    'a < in a tag': '<div <p>x</div>y<a<b>z',
    'the first of two attributes wins': '<a href=1 HREF=2 href=3>x',
    'white space of every kind between attributes': '<a\tb=1\nc=2\fd=3\re=4\r\nf=5 >x',
    'an attribute called __proto__': '<a __proto__=1 constructor=2>x',
    '> in quotes does not end a tag': `<a b=">" c='>'>d`,
    'line breaks in values': '<a b="1\r\n2\r3\n4">x',
    'NUL in text, names and values': 'a\0b<p\0>c<p \0=1>d<p x="\0">e</p\0>',
    'NUL in every kind of raw text':
      '<title>\0a</title><textarea>\0b</textarea><style>\0c</style><script>\0d</script><xmp>\0e</xmp><!--\0f--><?\0>',
    'NUL in tables, selects, columns and SVG':
      '<table>\0<tr>\0<td>\0a</table><select>\0<option>\0b</select><table><colgroup>\0</table><svg>\0<g>\0</g></svg>',
    'every NUL of several': '<svg>\0\0a\0\0</svg>\0\0b<title>\0\0</title><table>\0\0<tr>\0\0c',
    'NUL inside of references and line breaks': '<p>&am\0p;&#\0' + '65;\r\0\na</p><title>&am\0p;\r\0\n</title>',
    'NUL before the html element': '\0<p>\0x',
    'carriage returns in text': '<p>a\rb\r\nc\n\rd\r\r\ne</p><pre>\r\nf\rg</pre><textarea>\r\nh\ri</textarea>',
    'a byte order mark in the middle is text': '<p>\uFEFFa',
    'surrogates, paired and alone': '<p title="😀\ud800">😀\udc00a',
    'control characters': '<p>\u0001\u0008\u000b\u007f\u0085</p>',
  },
  'Character references': {
    'named, with and without semicolon': '<p>&amp; &amp &lt&gt; &copy &copy; &copyx &notit; &notin; &bogus; &;</p>',
    'the longest name wins': '<p>&not &notin &notinva; &prec; &precneqq; &lesg; &gesl;</p>',
    'names of two characters': '<p>&NotEqualTilde; &fjlig; &acE; &ThickSpace;x</p>',
    'in values, a name without semicolon before = or a letter is text':
      '<a b="?a=1&copy=2&lt3&amp&reg x&copy;&notit;" c=&amp d=\'&lt\'>x',
    'numbers, with and without semicolon': '<p>&#65;&#66&#x43;&#X44&#x4a;&#x4Ag&#; &#x; &#xg; &#a;</p>',
    'numbers of windows-1252': `<p>${Array.from({ length: 40 }, (_, i) => `&#${i + 122};`).join(' ')}</p>`,
    'numbers of control characters': `<p>${Array.from({ length: 33 }, (_, i) => `&#x${i.toString(16)};x`).join('')}</p>`,
    'numbers that are no characters': '<p>&#0;&#xD800;&#xDFFF;&#x110000;&#99999999999999999999;&#xFFFE;&#x1FFFF;</p>',
    'numbers in values': '<a b="&#0;&#128;&#x80;&#13;&#xD800;&#x10FFFF;&#65">x',
    'numbers beyond 16 bits': '<p>&#x1F600;&#128512;</p>',
    'a reference cut by the end of the page': '<p>a&am',
    'a number cut by the end of the page': '<p>a&#x4',
    'across what is nothing': '<p>&am</>p;',
    'in titles and text areas, but not in styles': '<title>&lt;</title><textarea>&lt;</textarea><style>&lt;</style>',
    'in a title after the beginning of an end tag': '<title></titl&amp;</title>x',
    'white space as references is white space': '<table>&#32;&#9;<tr><td>x</table>&#32;<p>y',
    'a no-break space is not white space': '<table>&nbsp;<tr><td>x</table>',
  },
  'Comments and doctypes': {
    'comments of every shape': '<!-- a --><!----><!--><!---><!-- -- --!>b<!-- c --- -->d<!--',
    'dashes in comments': '<!-----><!------><!-- a--b -- c---><!-- <!-- --><!--<!-->x<!--<!--->y<!-- --!x -->z',
    'a comment cut by the end of the page': '<p>a<!-- b --',
    'a comment cut after its exclamation mark': '<p>a<!-- b --!',
    'a comment cut after a dash': '<p>a<!-- b -',
    'bogus comments': '<!x><!><!-x><?xml version="1.0"?><?><!doctyp html><![if IE]>a<![endif]><!ELEMENT p>',
    'a bogus comment cut by the end of the page': '<p>a<!x y',
    'conditional comments': '<!--[if lt IE 9]><p>old</p><![endif]--><![if !IE]><p>new</p><![endif]>',
    'CDATA is a comment in HTML and text in SVG': '<![CDATA[a]]>b<svg><![CDATA[c & <d>]]></svg>',
    'CDATA in MathML': '<math><mi><![CDATA[a]]></mi><mo><x><![CDATA[b]]></x></mo><![CDATA[c&amp;]]]></math>',
    'CDATA that never ends': '<svg><![CDATA[a]]b>',
    'CDATA directly in foreignObject is text, in HTML inside it a comment':
      '<svg><foreignObject><![CDATA[a<b>]]>b<p><![CDATA[c]]></foreignObject><desc><![CDATA[d]]></svg>',
    'white space in CDATA': '<svg><![CDATA[ \r\n\0 ]]></svg>',
    'comments everywhere before the body':
      '<!--a--><!doctype html><!--b--><html><!--c--><head><!--d--></head><!--e--><body><!--f-->',
    'comments after the body': '<body>a</body><!--b--></html><!--c-->',
    'comments after the body, then more body': '<body>a</body><!--b--></html><!--c--><p>d</p><!--e-->',
    'an XML declaration and doctype': '<?xml version="1.0"?><!DOCTYPE html><html><p>x',
    'a second doctype is nothing': '<!doctype html>a<!doctype x>b',
    'a doctype without a name': '<!doctype><p>x',
    'a doctype with a strange name': '<!DOCTYPE Foo\0Bar><p>x',
    'a doctype without white space': '<!doctypehtml><p><table>x',
    'a doctype with ids':
      '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">x',
    'a doctype with ids in single quotes and no space': "<!DOCTYPE html PUBLIC'a''b'>x",
    'a doctype with a system id': '<!DOCTYPE html SYSTEM "about:legacy-compat">x',
    'a doctype with a keyword that is none': '<!DOCTYPE html PUBLISHED "x">x',
    'a doctype with more after its ids': '<!DOCTYPE html PUBLIC "a" "b" c>x',
    'a doctype whose quotes end at >': '<!DOCTYPE html PUBLIC "a>b">c',
    'a doctype cut by the end of the page': '<!DOCTYPE html PUBLIC "a',
    'a doctype after text': 'a<!doctype html>b',
  },
  'Quirks mode': {
    'without a doctype, a table stays in its paragraph': '<p>a<table><tr><td>b</table>c',
    'with a doctype, it ends the paragraph': '<!doctype html><p>a<table><tr><td>b</table>c',
    'HTML 4.01 Transitional without a system id':
      '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN"><p>a<table>',
    'HTML 4.01 Transitional with a system id':
      '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN" "http://www.w3.org/TR/html4/loose.dtd"><p>a<table>',
    'HTML 4.01 Frameset with an empty system id':
      '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01 Frameset//EN" ""><p>a<table>',
    'HTML 3.2': '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN"><p>a<table>',
    'HTML 2.0': '<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN"><p>a<table>',
    'the public id HTML': '<!DOCTYPE HTML PUBLIC "html"><p>a<table>',
    'IBM’s system id': '<!DOCTYPE html SYSTEM "http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd"><p>a<table>',
    'XHTML Transitional': '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "x"><p>a<table>',
    'another name': '<!DOCTYPE svg><p>a<table>',
    'a keyword without an id': '<!DOCTYPE html PUBLIC><p>a<table>',
    'a cut doctype': '<!DOCTYPE html',
    'a comment before the doctype': '<!-- a --><!doctype html><p>b<table>',
    'a processing instruction before the doctype': '<?xml version="1.0"?><!doctype html><p>b<table>',
    'a doctype that comes too late': 'x<!doctype html><p>b<table>',
  },
  'html, head and body': {
    'an empty page': '',
    'white space only': ' \n\t',
    'text only': 'x',
    'white space before everything is dropped':
      ' \n<!doctype html> \n<html> \n<head> \n<title>a</title> \n</head> \n<body> b',
    'head and body are implied': '<title>a</title><p>b',
    'an end tag implies them': '</p>x',
    '</br> implies them': '</br>x',
    '</head>, </body> and </html> imply them': '</head></body></html>',
    'other end tags imply nothing': '</div></title><title>a</title>',
    'head elements after the head': '<head></head><title>a</title><script>b</script><base><p>c<title>d</title>',
    'a second head is nothing': '<head a=1></head><head b=2><p>x<head c=3>y',
    'attributes of a second html': '<html a=1 b=2><p>x<html b=3 c=4>y',
    'attributes of an html after implied ones': '<p>x<html lang=de>y<html lang=en dir=rtl>z',
    'attributes of a second body': '<body a=1><p>x<body a=2 b=3>y',
    'attributes of a body after an implied one': '<p>x<body class=a>y',
    'a second html in a template is nothing': '<template><html a=1><body b=2></template>x',
    'noscript in the head holds links, styles and meta':
      '<head><noscript><link><style>a</style><meta></noscript><title>b</title>',
    'noscript in the head ends at other elements': '<head><noscript><link><p>a</noscript>b',
    'noscript in the head ends at text': '<head><noscript> a</noscript>b',
    'noscript in the body holds anything': '<p>a<noscript><p>b<img src=x></noscript>c',
    'template in the head': '<head><template><p>a</template><title>b</title></head>c',
    'text between head and body': '<head></head>a<body class=x>b',
    'text after the body goes into it': '<body>a</body> b</html> c',
    'elements after the body go into it': '<body><div>a</body><p>b</html><p>c',
    'white space after the body': '<body>a</body> \n</html> \n',
    '</body> without a body': '<head></body><title>a</title>',
    'head elements after the body': '<body>a</body><title>b</title></html><meta>',
  },
  Framesets: {
    'a frameset instead of a body': '<frameset cols=50%,50%><frame src=a><frame src=b></frameset>',
    'nested framesets': '<frameset><frameset><frame></frameset>x<frame/></frameset>y',
    noframes:
      '<frameset><frame><noframes><p>a</noframes></frameset><noframes>b</noframes></html><noframes>c</noframes>',
    'a frameset after white space and comments': ' <!--a--> <frameset><frame>',
    'a frameset after an empty div replaces the body': '<div></div><frameset><frame>',
    'a frameset after text is nothing': 'a<frameset><frame>',
    'a frameset after an image is nothing': '<img><frameset><frame>',
    'a frameset after a hidden input': '<input type=hidden><frameset><frame>',
    'a frameset after a body tag is nothing': '<body><frameset><frame>',
    'a frameset after a list item is nothing': '<li><frameset>',
    'a frameset after a NUL': '\0<p>\0<frameset>',
    'comments and text after a frameset': '<frameset></frameset> a <!--b--></html> c <!--d-->',
    'text in a frameset: only white space stays': '<frameset>a b\nc<frame></frameset>',
    'frame outside of a frameset': 'a<frame>b',
  },
  Blocks: {
    'paragraphs end at blocks': '<p>1<p>2<div>3</div>4<p>5<h1>6<h2>7',
    'every block ends a paragraph':
      '<p>a<address></address><p>b<blockquote></blockquote><p>c<center></center><p>d<details></details><p>e<fieldset></fieldset>' +
      '<p>f<main></main><p>g<search></search><p>h<hr><p>i<pre></pre><p>j<form></form><p>k<ul></ul><p>l<xmp></xmp><p>m<summary>',
    'a paragraph in a button does not end outside': '<p>a<button><p>b</button>c</p>d',
    'an unopened </p> is an empty paragraph': 'a</p>b</br>c',
    'an end tag closes what is open inside': '<div><b><i>x</div>y',
    'an unopened end tag is ignored': '<div></span>x</b></div>y',
    'an end tag stops at a special element': '<span><div></span>x</div>y',
    'list items end each other': '<ul><li>1<li>2<ul><li>3</ul><li>4</ul>',
    'a list item looks past div, p and address': '<ul><li><div><li>a<li><p><li>b<li><address><li>c<li><section><li>d',
    'a list item outside of a list': '<li>a<div>b<li>c',
    '</li> stays in its list': '<ul><li>a<ol></li>b</ol></li>c',
    'definition lists': '<dl><dt>a<dd>b<dt>c<dd>d</dl>',
    'definition lists with a div': '<dl><div><dt>a<dd>b</div><dt>c<p><dd>d</dl>',
    'headings end headings': '<h1>a<h2>b</h3>c<h4>d</h4>',
    'a heading’s end tag closes any heading': '<h1><b>a</h6>b',
    'a heading in a div in a heading': '<h1><div><h2>a</h1>b',
    'a form in a form is not an element': '<form><div><form>x</form>y</form>z',
    '</form> closes only the form': '<form><div>a</form>b</div>c<form>d',
    'a form in a template is an element': '<form><template><form>a</form></template><form>b',
    'a button in a button ends it': '<button>a<div><button>b</button>c',
    'a button ends a paragraph inside it': '<button><p>a</button>b',
    'pre and listing drop a first newline':
      '<pre>\na</pre><pre>\n\nb</pre><listing>\nc</listing><pre><b>\nd</b></pre><pre>&#10;e</pre>',
    'only directly after the tag': '<pre><!---->\na</pre><pre></>\nb</pre><pre> \nc</pre>',
    'plaintext never ends': 'a<plaintext>b<p>c</plaintext>d',
    'plaintext ends a paragraph': '<p>a<plaintext>b',
    'xmp ends a paragraph': '<p>a<xmp><b></xmp>b',
    ruby: '<ruby>a<rt>b<rp>c<rb>d<rtc>e<rt>f</ruby>g',
    'ruby outside of ruby': '<rb>a<rt>b<rtc>c',
    'hr in a paragraph': '<p>a<hr>b',
    'image is img': '<image src=a>b<svg><image/>c</svg>',
    'details, dialog and summary': '<p>a<details><summary>b<p>c</details>d<dialog>e',
    'menu, dir and old blocks': '<p>a<menu><li>b</menu><p><dir><li>c</dir><p><hgroup>d',
  },
  Formatting: {
    'misnested formatting': '<b>1<i>2</b>3</i>4',
    'formatting around blocks': '<b>1<p>2</b>3</p>4',
    'formatting around many blocks': '<b><div><div><div><div><div><div><div><div><div><div>x</b>y',
    'the outer loop ends after eight rounds': `<b>${'<div><i>'.repeat(12)}x</b>y`,
    'formatting continues in the next paragraph': '<p><b><i>a<p>b</b>c<p>d',
    'a link in a link ends it': '<a href=1>a<a href=2>b</a>c',
    'a link in a block in a link': '<a href=1>a<div>b<a href=2>c</div>d</a>e',
    'a link in a table in a link': '<a href=1><table><a href=2>x</a><tr><td>y</table>z',
    'nobr in nobr ends it': '<nobr>a<nobr>b<div><nobr>c',
    'at most three equal elements are opened again (Noah’s Ark)': '<p><b><b><b><b><b>x<p>y',
    'elements with other attributes are not equal': '<p><b><b class=a><b><b id=a><b><b class=a>x<p>y',
    'attributes in another order are equal': '<p><b x=1 y=2><b y=2 x=1><b x=1 y=2><b y=2 x=1>x<p>y',
    'font with attributes': '<p><font size=1><font color=red>a<p>b</font>c<p>d',
    'white space opens formatting again': '<p><b>a</p> <p>b',
    'a marker stops formatting': '<b>a<object>b</object>c</b><i><marquee>d</i>e</marquee>f<u><applet>g</u></applet>h',
    'table cells are a marker': '<b>a<table><tr><td>b<i>c<td>d</table>e',
    'formatting in a caption': '<table><caption><b>a</caption><tr><td>b</table>c',
    'an end tag that has no element in scope': '<b>a<object></b>b</object>c',
    'a formatting element that is no longer open': '<p><b>a</p></b>b',
    'code, em, strong, tt and the like': '<p><code><em><strong><tt><u><s><strike><small><big>x<p>y</small>z',
    'an end tag that only looks like formatting': '<b>a<span></b>b</span>c',
    'the furthest block takes the content': '<a>1<p>2<em>3</a>4</em>5</p>6',
    'inner formatting is copied': '<a><b><i><u><s><p>x</a>y',
  },
  Tables: {
    'table cells and rows end each other': '<table><thead><tr><th>a<th>b<tbody><tr><td>1<td>2<tr><td>3</table>',
    'tbody and tr are implied': '<table><td>a<td>b<tr><td>c',
    'tbody is implied by tr': '<table><tr><td>a',
    'colgroup is implied by col': '<table><col><col span=2><tr><td>a',
    'a column group ends at anything else': '<table><colgroup><col>x<tr><td>a',
    'white space in a column group': '<table><colgroup> <col> \n</colgroup> <col></table>',
    'a second caption and colgroup': '<table><caption>a<caption>b<colgroup><caption>c<tr><td>d',
    'a caption ends at rows': '<table><caption><p>a<tr><td>b',
    'text in a table moves in front of it': '<table>a<tr>b<td>c</td>d</tr>e</table>f',
    'white space in a table stays': '<table> <tr> <td>a</td> </tr> </table>',
    'white space beside text moves with it': '<table> a <tr> <td>b',
    'elements in a table move in front of it': '<table><b>a</b><tr><p>b</p><td>c</table>',
    'elements in a table with a formatting element': '<table><b><tr>a<td>b</table>c',
    'a link that moves': '<table><a href=x>a</a><tr><td>b</table>',
    'nested blocks that move': '<table><div><p>a<div>b<tr><td>c</div></table>',
    'a table in a table': '<table><tr><td>a<table><tr><td>b</table>c</table>d',
    'a table directly in a table': '<table><tr><table><tr><td>a</table>b',
    'hidden inputs stay': '<table><input type=hidden><tr><input type=HIDDEN><td>a</table>',
    'other inputs move': '<table><input type=text><input><tr><td>a</table>',
    'scripts, styles and templates stay':
      '<table><script>a</script><style>b</style><template><td>c</template><tr><td>d',
    'a form in a table is empty': '<table><form><tr><td><input></form><tr><td>a</table>',
    'a second form in a table is nothing': '<form><table><form><tr><td>a</table></form>',
    'select in a table ends at a cell': '<table><tr><td><select><option>a<td>b</table>',
    'select in a table that is moved': '<table><select><option>a<tr><td>b</table>',
    'end tags in a cell': '<table><tr><td><p>a</tr></td>b</tbody>c</table>d',
    'end tags of parts that are not open are nothing':
      '<table><tr></tfoot><td>a</thead>b<td>c<tr>d</tfoot></thead><td>e</table>',
    'end tags of other parts are nothing': '<table><tr><td></body></col></html>a</caption>b</table>',
    '</table> closes everything in it': '<table><tr><td><div><b>a</table>b',
    '</td> closes what is open inside': '<table><tr><td><div><p>a</td><td>b',
    '</th> does not close td': '<table><tr><td>a</th>b</table>',
    'cells outside of tables are nothing': '<td>a<tr>b<tbody>c<caption>d<col>e',
    'cells in a div in a table': '<table><tr><td><div><td>a</div>b</table>',
    'thead, tfoot and tbody end each other':
      '<table><thead><tr><td>a<tfoot><tr><td>b<tbody><tr><td>c</thead></tfoot></table>',
    'comments stay': '<table><!--a--><tr><!--b--><td><!--c--></table>',
    'a table that never ends': '<table><tr><td>a<p>b',
    'a body or html tag in a table': '<table><body a=1><tr><html b=2><td>x</table>',
    'svg in a table moves': '<table><svg><g/></svg><tr><td>a</table>',
    'raw text in a table moves': '<table><title>a</title><textarea>b</textarea><xmp>c</xmp><tr><td>d</table>',
    'a paragraph that is moved, and its end tag': '<table><p>a</p></p>b<tr><td>c</table>',
    'a heading that is moved': '<table><h1>a<tr><td>b</h1></table>c',
    'formatting ended in a table': '<b><table></b><tr><td>a</table>b',
    'a list in a table': '<ul><li><table><li>a<tr><td>b</table>',
  },
  Select: {
    'options and groups end each other': '<select><optgroup><option>1<option>2<optgroup><option>3</select>',
    'tags in a select are nothing': '<select><p>a<b>b<div>c</select>d',
    'scripts and templates in a select': '<select><script>a</script><template><p>b</template><option>c</select>',
    'a select in a select ends it': '<select><option>a<select><option>b</select>c',
    'an input ends a select': '<select><option>a<input>b',
    'a textarea ends a select': '<select><option>a<textarea>b</textarea>',
    'hr in a select': '<select><option>a<hr><optgroup><option>b<hr></select>',
    '</optgroup> closes an option': '<select><optgroup><option>a</optgroup>b</option>c</select>',
    'a select that never ends': '<select><option>a',
    'options outside of a select': '<option>a<option>b<optgroup>c<p><option>d',
    'text in a select': '<select> a <option> b </option> c </select>',
    'a table in a select': '<select><table><tr><td>a</select>b',
    '</table> in a select in a table': '<table><tr><td><select></table>a',
    'formatting around a select': '<b><select><option>a</b></select>c',
  },
  'Raw text': {
    'scripts are text': '<script>if (a < b) document.write("<p></p>")</script><p>x',
    'a script ends at its own tag only': '<script></style></scriptx></script ><p>',
    'a script’s end tag may have attributes': '<script>a</script/b c=">">d',
    'a script in a comment': '<script><!-- a </script>b',
    'a script in a script in a comment': '<script><!--<script>a</script>b--></script>c',
    'a script in a script, without the comment’s end': '<script><!--<script>a</script>b</script>c',
    'a nested script that is not escaped': '<script><script>a</script>b</script>c',
    '<!--> in a script': '<script><!--><script></script>a</script>b',
    '<!---> in a script': '<script><!---><script></script>a</script>b',
    '<!--- and - > in a script': '<script><!--- - -> --x<script></script>a--></script>b',
    'names that only begin with script': '<script><!--<scripty></scripty><script/></script>a</script>b',
    'capitals in a script': '<SCRIPT><!--<SCRIPT></ScRiPt>a</script>b',
    'an escaped script cut by the end of the page': '<script><!--<script>a',
    'an end tag cut by the end of the page': '<script>a</script',
    'an end tag with attributes cut by the end of the page': '<script>a</script b="',
    'titles are text with entities': '<title>a <b> &amp; c</title>d',
    'text areas are text with entities': '<textarea><p>&lt;</textarea>d',
    'a text area drops a first newline':
      '<textarea>\na</textarea><textarea>\r\nb</textarea><textarea>&#10;c</textarea>',
    'titles keep a first newline': '<title>\na</title>',
    'style, iframe, noembed, noframes and xmp':
      '<style><b></style><iframe><p></iframe><noembed><b></noembed><noframes><i></noframes><xmp><p>&amp;</xmp>x',
    'unclosed raw text runs to the end': '<p>a<script>b<p>c',
    'an unclosed title runs to the end': '<title>a<p>&amp;b',
    'an unclosed text area runs to the end': '<textarea>\na<p>&amp;b',
    'raw text ends at a tag in capitals': '<style>a</STYLE>b<title>c</Title\n>d',
    'raw text elements in foreign content are ordinary elements':
      '<svg><style><a>&lt;</a></style><title><b>x</b></title><script>y<z/></script></svg>',
    'a self-closing script': '<script/>a</script>b',
  },
  Templates: {
    'a template has content': '<template><p>a</template>b',
    'a template in a template': '<template>a<template>b</template>c</template>d',
    'rows and cells in a template':
      '<template><tr><td>a</template><template><td>b</template><template><tbody><tr><td>c</template>',
    'columns in a template':
      '<template><col></template><template><colgroup><col></template><template><caption>a</template>',
    'a row, then a block in a template': '<template><tr><td>a</td></tr><div>b</template>',
    'a block, then a row in a template': '<template><div>a</div><tr><td>b</template>',
    'a column, then anything in a template': '<template><col>a<div>b<col></template>',
    'end tags do not reach out of a template': '<div><template></div>a</template>b</div>c',
    'end tags of a table do not reach out of a template':
      '<table><tr><td><template><td></tr>a</template>b<template><td><tr>c<td></tbody>d</table>e</template>f</table>g',
    'formatting does not reach into a template': '<b><template>a</template>b</b>c',
    'formatting does not reach out of a template': '<p><template><b>a</template>b<p>c',
    '</template> without a template': '</template>a',
    'a template that never ends': '<template><p>a<tr>b',
    'a template in a table': '<table><template><tr><td>a</template><tr><td>b</table>',
    'a template in a row, in columns and in a select':
      '<table><colgroup><template>a</template><tr><template><td>b</template><td>c</table><select><template>d</template></select>',
    'a template after the head': '<head></head><template>a</template><body>b',
    'a template after the body': '<body>a</body><template>b</template>',
    'a template in a frameset': '<frameset><template><frame></template></frameset>',
    'head elements in a template': '<template><title>a</title><meta><script>b</script></template>c',
    'a template in SVG is not a template': '<svg><template><p>a</template>b',
    'text in a template’s table': '<template><table>a<tr>b<td>c</table></template>d',
    'text in a template’s row moves to the end of the template': '<template><tr>a<td>b</template>',
  },
  'SVG and MathML': {
    'SVG closes itself, HTML does not': '<svg><path/><g/></svg><div/>x<span/>y',
    'names are spelt as SVG spells them':
      '<svg><lineargradient/><FOREIGNOBJECT/><clippath/><fegaussianblur/><textpath/><TITLE/></svg>',
    'attributes are spelt as SVG spells them':
      '<svg VIEWBOX=1 preserveaspectratio=2 gradientunits=3 attributename=4 onclick=5><g/></svg>',
    'attributes in MathML': '<math definitionurl=a viewbox=b><mi DEFINITIONURL=c/></math>',
    'attributes with a namespace':
      '<svg xlink:href=a xml:lang=b xmlns=c xmlns:xlink=d xlink:foo=e xml:foo=f XLINK:TITLE=g><a xlink:href=h/></svg>',
    'the same names in HTML': '<p viewbox=1 xlink:href=2 definitionurl=3 xml:lang=4><lineargradient>',
    'HTML inside foreignObject': '<svg><foreignObject><p>a<p>b</foreignObject><circle/></svg>c',
    'HTML inside desc and title': '<svg><desc><p>a</desc><title><b>b</title><g>c</g></svg>d',
    'HTML elements end SVG': '<svg><g><p>a</g></svg>b',
    'every kind of element that ends foreign content':
      '<svg><b>1</b></svg><svg><br></svg><svg><table></table></svg><svg><h1>2</h1></svg><svg><ul></ul></svg><math><img></math>',
    'font ends SVG only with color, face or size': '<svg><font>a</font><font size=1>b</font></svg><svg><font COLOR=x>c',
    '</p> and </br> end SVG': '<svg><g></p>a</g></svg><svg></br>b</svg>',
    'end tags look at names without case': '<svg><linearGradient><stop/></LINEARGRADIENT><g/></SVG>a',
    'an end tag of HTML around SVG': '<div><svg><g></div>a</svg>b',
    'MathML text elements hold HTML':
      '<math><mi><b>a</b></mi><mo><p>b</mo><mn>c<mglyph/><malignmark/></mn><ms><g/></ms><mtext><div>d</mtext></math>e',
    'HTML elements end MathML': '<math><mrow><p>a</mrow></math>b',
    'annotation-xml with HTML':
      '<math><annotation-xml encoding=text/html><p>a</annotation-xml><annotation-xml encoding="Application/XHTML+xml"><p>b</math>c',
    'annotation-xml without HTML':
      '<math><annotation-xml><p>a</annotation-xml></math><math><annotation-xml encoding=x><b>b</math>',
    'SVG in annotation-xml': '<math><annotation-xml><svg><g/></svg></annotation-xml></math>',
    'MathML in SVG and SVG in MathML':
      '<svg><math><mi>a</math></svg><math><svg><g/></svg><mi><svg><path/></svg></mi></math>',
    'tables in foreignObject': '<svg><foreignObject><table><tr><td>a<svg><foreignObject><td>b</table></svg>c',
    'formatting around SVG': '<b><svg><g>a</b>b</svg>c',
    'a paragraph around SVG': '<p><svg><foreignObject><p>a</p></foreignObject></svg>b</p>c',
    'select, form and headings in foreignObject': '<svg><foreignObject><h1>a<h2>b<form><select><option>c</svg>d',
    'scripts in SVG': '<svg><script>a<b>c</b></script><script/></svg>d',
    'SVG that never ends': '<svg><g>a',
    'SVG at the end of the page, in a table': '<table><tr><td><svg><desc>a<td>b',
    'white space and NUL in SVG': '<svg> \0 <g>\0</g>\n</svg>',
    'frameset-ok and SVG': '<svg> </svg><frameset>',
    'text in SVG and frameset': '<svg>a</svg><frameset>',
    'body, html and head in SVG': '<svg><body a=1></svg><svg><head></svg><svg><html b=2>x</svg>',
  },
}

/** Pages on which the tree was once not parse5's. */
const ONCE_DIFFERENT = [
  '<m>&#10<frameset>',
  '<p><b><plaintext> ',
  '<template><colgroup>z',
  '<template><col>h ',
  '<listing></>\n',
  '<pre>&#10e',
  '<table><param>\0\n',
  '<l><script>b</script><o><frameset>',
  '<table><tr><e></tfoot>>',
  '<table><tr><e></tfoot>x<td>y',
  '<p><s><plaintext>\0',
  '<template><tr><font><caption><plaintext>\0',
  '<a b 2 1>',
  '<table>></>\n',
  '<table> </>x<tr></> </>y',
  '<template><tr>;</> ',
  '&#\0x30',
  '&#\0',
  '\0\r\0\n',
  '<math><mi><![CDATA[a]]>',
  '<b><p><svg><desc></p><![CDATA[a]]>',
  '<math><mi><![CDATA[\0]]>',
  '<svg><![CDATA[ ]]></svg><frameset>',
  '<svg><![CDATA[\0]]></svg><frameset>',
  '<table><tr></tfoot><td>x',
  '<table><td><template><td></tr>x',
  '<table><tr><td><template><td><tr>',
  '<template><tr></tfoot><x>a<caption><y>',
  '<e q=">" x=<>',
]

for (const [chapter, cases] of Object.entries(CASES)) {
  for (const [title, html] of Object.entries(cases))
    test(`builds parse5’s tree. ${chapter}: ${title}`, () => assertSameTree(html))
}

for (const html of ONCE_DIFFERENT) test(`builds parse5’s tree of ${JSON.stringify(html)}`, () => assertSameTree(html))

test('builds parse5’s tree of every page above, wherever it is cut off', () => {
  for (const html of Object.values(CASES).flatMap((cases) => Object.values(cases)))
    for (let length = 0; length < html.length; length++) {
      const page = html.slice(0, length)
      assertSameTree(page, JSON.stringify(page))
    }
})

test('builds parse5’s tree of any two pages above in a row', () => {
  const pages = Object.values(CASES).flatMap((cases) => Object.values(cases))
  const seed = Date.now() % 1_000_000_000
  const random = randomFrom(seed)
  for (let i = 0; i < 1000; i++) {
    const page = pages[random(pages.length)]! + pages[random(pages.length)]!
    assertSameTree(page, `${JSON.stringify(page)}, seed ${seed}`)
  }
})

test('builds parse5’s tree of generated documents', () => {
  const documents = 4000
  const seed = Date.now() % 1_000_000_000
  for (let i = 0; i < documents; i++) {
    const html = generatedHtml(randomOf(seed, i))
    if (isSameTree(html)) continue
    const smallest = shrink(html, (page) => !isSameTree(page))
    const again = `.deps/bin/node bench/tree-oracle.ts --documents ${documents} --seed ${seed}`
    assert.fail(`${describeDifference(smallest)}\nKeep it in ONCE_DIFFERENT. All of this run: ${again}`)
  }
})

test('builds parse5’s tree from any messy page', () => {
  fc.assert(
    fc.property(messyHtml, (html) => assertSameTree(html)),
    { numRuns: 2000 },
  )
})

const WINDOW = (1 << 17) - 1

test('builds parse5’s tree wherever the window on a long page ends', () => {
  fc.assert(
    fc.property(messyHtml, fc.double({ min: 0, max: 1, noNaN: true }), (html, part) => {
      assertSameTree(`<p>${'x'.repeat(WINDOW - 3 - Math.floor(part * html.length))}${html}`)
    }),
    { numRuns: 300 },
  )
})

test('builds parse5’s tree wherever the window ends in a table, a script, a template or SVG', () => {
  const html =
    '<table a="b>c">x<tr><!--d--><td class=\'e\'>f</td></table><script>g<!--<script></script>--></script ><template><td>h' +
    '</template><svg viewbox=1><![CDATA[i]]><g/></svg><title>j&amp;</title><pre>\nk</pre></>l</ m><!doctype n><b><p>o</b>p'
  // parse5 reads it once: the filling only makes one text node longer.
  const theirs = theirReading(`<p>x${html}`).html
  for (let before = 0; before <= html.length; before++) {
    const filling = 'x'.repeat(WINDOW - 3 - before)
    assert.equal(
      ourReading(`<p>${filling}${html}`).html,
      theirs.replace('<p>x', `<p>${filling}`),
      `the window ends before ${JSON.stringify(html.slice(before))}`,
    )
  }
})

test('reads tags longer than the window on the page', () => {
  const value = 'v'.repeat(1 << 19)
  const page =
    `<ul><li title="${value}">a</li><li>b</li${' '.repeat(1 << 18)}><x${value}>c</x${value}>d</ul><p>e` +
    `<table title="${value}">f<td>g</table${' '.repeat(1 << 18)}><script>h</script${' '.repeat(1 << 18)}>i<svg a="${value}"/>j`
  assertSameTree(page)
})

test('reads comments, raw text and CDATA longer than the window on the page', () => {
  const long = 'v <b> '.repeat(1 << 16)
  assertSameTree(
    `<!--${long}--><script>${long}</script>a<svg><![CDATA[${long}]]></svg><title>${long}</title><?${long.replaceAll('>', '')}><p>b<plaintext>${long}`,
  )
})

test('builds parse5’s tree of a long page with changes all over', () => {
  const row = '<tr><td>1<td><a href="/x?y=1&amp;z">two</a><td><b>3</b></tr>\n'
  const seed = Date.now() % 1_000_000_000
  const random = randomFrom(seed)
  for (let i = 0; i < 3; i++) {
    const page = mutatedHtml(`<!doctype html><title>x</title><table>${row.repeat(2500)}</table><p>end`, random)
    assertSameTree(page, `seed ${seed}, page ${i}`)
  }
})
