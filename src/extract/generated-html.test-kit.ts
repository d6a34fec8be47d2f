/**
 * Documents made from a seed, for comparing trees by the thousand: short ones that like tables, formatting, templates, SVG and
 * MathML and everything in the wrong place, and real pages with a few characters changed. The same seed gives the same documents
 * in the tests and in `bench/tree-oracle.ts`.
 */

/** A whole number from 0 up to, but not including, `below`. */
export type Random = (below: number) => number

/** A linear congruential generator: enough for picking tags, and one line. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** For the document with this number: documents must not depend on those before them. */
export function randomOf(seed: number, document: number): Random {
  const random = randomFrom(Math.imul(seed, 1000003) + Math.imul(document, 7919))
  for (let i = 0; i < 4; i++) random(2) // neighbouring seeds begin alike
  return random
}

const TAGS = (
  'a a b b i p p div span ul ol li table table tbody thead tfoot tr tr td td th caption col colgroup dl dt dd h1 h2 form form ' +
  'input button select option optgroup textarea title script style iframe noscript br hr img image link meta base body head html ' +
  'svg g desc foreignObject path math mi mtext annotation-xml x-card font nobr noembed noframes xmp ruby rt rp rb rtc section ' +
  'article pre listing template template frameset frame object applet marquee plaintext address em strong code keygen param ' +
  'mglyph malignmark main center DIV Li P u s big tt details summary dialog fieldset embed source wbr bgsound basefont ' +
  'linearGradient clipPath mo ms mn search menu blockquote'
).split(' ')

const ATTRIBUTES = [
  ...['', '', '', '', '', ' class=a', ' id="b"', ' href=x', ' type=hidden', ' encoding="text/html"', ' color=red'],
  ...[' a=1 a=2', ' viewBox="1"', ' xlink:href=y', ' definitionurl=z', ' x=&lt;&amp;&notit;', " q='", ' TYPE=hidden'],
  ...[
    ' é=1',
    ' /x',
    ' encoding=APPLICATION/xhtml+xml',
    ' xml:lang=de xmlns=u',
    ' xmlns:xlink=v',
    ' face=x',
    ' __proto__=1',
  ],
  ...[' b = "c d"', ' a=b/', ' =x', ' "', ' x=&copy=1&copy;', ' \0=\0', ' x="\r\n"', ' z=1 c=2', ' attributename=q'],
]

const TEXTS = [
  ...[
    'x',
    ' ',
    '\n',
    'one two',
    ' y ',
    '&amp;',
    '&lt;',
    '&#32;',
    '&nbsp;',
    'a&b',
    '<',
    '< b',
    '\0',
    '\0',
    '\r\n',
    '&#10;',
  ],
  ...[
    '&notit;',
    '&#128;',
    '&#0;',
    'AT&T',
    '\nz',
    '  ',
    '\r',
    '\t\f',
    '&#13;',
    '&#xD800;',
    '&#10',
    '>',
    '&',
    '日本',
    '😀',
  ],
  ...['x</>', ' </>', '</> ', '</>y', '\n</>\n', 'a</', '<!', '\uFEFF', '\r\0\n', '&am\0p;', '&#\0', '65;', '\0\0'],
]

const OTHER = [
  ...[
    '<!--c-->',
    '<!-->',
    '<!--a--!>',
    '<!doctype html>',
    '<!x>',
    '<?php ?>',
    '</>',
    '</ x>',
    '<![CDATA[ c<b> ]]>',
    '<![CDATA[ ]]>',
    '<![CDATA[\0]]>',
  ],
  ...['<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.0 Transitional//EN">', '</br>', '</p>', '<script>a<b</script>'],
  ...['<script><!--<script></script>x--></script>', '<title>a<b>&lt;</title>', '<textarea>\nq</textarea>'],
  ...['<style>&amp;<p></style>', '</body>', '</html>', '</head>', '<svg><title><p>', '<math><mi>', '<table><tr><td>'],
  ...['</table>', '<select><option>', '<b><p>', '</b>', '<!--', '</a>', '</form>', '</template>', '<a><div>'],
  ...[
    '<b class=a><b class=a><b class=a><b class=a>',
    '<svg><foreignObject><div>',
    '<table><b>',
    '<table>x',
    '<!-- - --',
  ],
  ...[
    '<template><tr>',
    '<template><td>',
    '<template><col>',
    '</tbody>',
    '<math><annotation-xml encoding=text/html>',
    '<',
  ],
]

export interface GeneratorOptions {
  /** Pieces per document. */
  readonly piecesMax?: number
  /** Leaves out pieces that contain this. */
  readonly without?: RegExp
}

/** One document. */
export function generatedHtml(random: Random, { piecesMax = 14, without }: GeneratorOptions = {}): string {
  const pick = (from: readonly string[]) => from[random(from.length)]!
  const pieces = 1 + random(piecesMax)
  let html = random(3) === 0 ? '<!doctype html>' : ''
  for (let i = 0; i < pieces; ) {
    const kind = random(12)
    let piece: string
    if (kind < 5) piece = `<${pick(TAGS)}${pick(ATTRIBUTES)}${random(12) === 0 ? '/' : ''}>`
    else if (kind < 8) piece = `</${pick(TAGS)}>`
    else piece = kind < 10 ? pick(TEXTS) : pick(OTHER)
    if (without?.test(piece) === true) continue
    html += piece
    i++
  }
  return html
}

const INSERTED_CHARACTERS = '<>/"\'&!-= \n\tab\0\r'
const INSERTED_TAGS = (
  '</table> <table> </b> <p> <tr> <td> <a> </p> </div> <b> <select> <svg> <template> </template> </body> <form> </td> ' +
  '<math> <!-- --> <script> </script> <title>'
).split(' ')

/** A page with up to six changes: characters removed, replaced or added, a piece repeated elsewhere, a tag added. */
export function mutatedHtml(page: string, random: Random): string {
  let html = page
  for (let changes = 1 + random(6); changes > 0 && html !== ''; changes--) {
    const at = random(html.length)
    const from = random(html.length)
    const [before, after] = [html.slice(0, at), html.slice(at)]
    switch (random(5)) {
      case 0:
        html = before + after.slice(1 + random(20))
        break
      case 1:
        html = before + INSERTED_CHARACTERS[random(INSERTED_CHARACTERS.length)] + after
        break
      case 2:
        html = before + html.slice(from, from + 50) + after
        break
      case 3:
        html = before + INSERTED_TAGS[random(INSERTED_TAGS.length)] + after
        break
      default:
        html = `${before}x${after.slice(1)}`
    }
  }
  return html
}
