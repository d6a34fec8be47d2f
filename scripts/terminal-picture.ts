/**
 * Turns a captured terminal screen into an SVG picture for the README. The picture in docs/pictures/ is made like this:
 *
 *   tmux new-session -d -s picture -x 122 -y 40 sh
 *   tmux send-keys -t picture 'make demo' Enter               # and wait until it has ended
 *   tmux capture-pane -e -p -t picture | node scripts/terminal-picture.ts --title 'make demo' > docs/pictures/demo.svg
 *
 * Each group of words gets its own position and width, so columns line up in any font. No text begins or ends with a space or
 * contains two in a row: browsers collapse those (Chromium ignores `xml:space`) and then stretch the rest to the full width.
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

const CELL = { width: 8.4, height: 19, fontSize: 14 }
const PADDING = 16
const BAR_HEIGHT = 34
const COLORS = { back: '#16181d', bar: '#22252c', text: '#d7dae0', dim: '#8b919d' }
/** The 16 colours of a terminal, readable on the dark background. */
const PALETTE = [
  ...['#3b4048', '#f2777a', '#8fd19e', '#f0c674', '#7aa6da', '#c397d8', '#70c0ba', '#d7dae0'],
  ...['#8b919d', '#ff9a9c', '#b0e6bb', '#ffdf9c', '#a3c7f0', '#dcb8ec', '#98dcd6', '#ffffff'],
]

interface Style {
  color: string | undefined
  isBold: boolean
  isDim: boolean
}

interface Run {
  column: number
  columns: number
  text: string
  style: Style
}

const PLAIN: Style = { color: undefined, isBold: false, isDim: false }

/** One line of captured text, cut where its style changes and at wide gaps. The style carries over into the next line. */
function runsOf(line: string, before: Style): { runs: Run[]; style: Style } {
  const runs: Run[] = []
  let style = before
  let column = 0
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is read here
  for (const [index, part] of line.split(/\x1b\[([\d;]*)m/).entries()) {
    if (index % 2 === 1) style = restyled(style, part.split(';').map(Number))
    else if (part !== '') {
      for (const piece of part.split(/( {2,}|^ | $)/)) {
        const columns = [...piece].length
        if (piece.trim() !== '') runs.push({ column, columns, text: piece, style })
        column += columns
      }
    }
  }
  return { runs, style }
}

function restyled(style: Style, codes: number[]): Style {
  const next = { ...style }
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!
    if (code === 0) Object.assign(next, PLAIN)
    else if (code === 1) next.isBold = true
    else if (code === 2) next.isDim = true
    else if (code === 22) next.isBold = next.isDim = false
    else if (code === 39) next.color = undefined
    else if (code >= 30 && code <= 37) next.color = PALETTE[code - 30]
    else if (code >= 90 && code <= 97) next.color = PALETTE[code - 82]
    else if (code === 38 && codes[i + 1] === 5) {
      next.color = PALETTE[codes[i + 2]!] ?? COLORS.text
      i += 2
    }
  }
  return next
}

export function terminalPicture(screen: string, title: string): string {
  const lines = screen.replace(/\s+$/, '').split('\n')
  let style = PLAIN
  const rows = lines.map((line) => {
    const read = runsOf(line.trimEnd(), style)
    style = read.style
    return read.runs
  })
  const columns = Math.max(...rows.flat().map((run) => run.column + run.columns))
  const width = Math.ceil(columns * CELL.width + 2 * PADDING)
  const height = BAR_HEIGHT + rows.length * CELL.height + 2 * PADDING
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="8" fill="${COLORS.back}"/>`,
    `<path d="M0 ${BAR_HEIGHT}V8a8 8 0 0 1 8-8H${width - 8}a8 8 0 0 1 8 8V${BAR_HEIGHT}z" fill="${COLORS.bar}"/>`,
    ...[0, 1, 2].map((i) => `<circle cx="${20 + i * 20}" cy="${BAR_HEIGHT / 2}" r="6" fill="${PALETTE[i + 1]}"/>`),
    `<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="${CELL.fontSize}" fill="${COLORS.text}">`,
    `<text x="${width / 2}" y="${BAR_HEIGHT / 2 + 5}" text-anchor="middle" fill="${COLORS.dim}">${escaped(title)}</text>`,
    ...rows.flatMap((runs, row) => runs.map((run) => textOf(run, row))),
    '</g>',
    '</svg>',
  ].join('\n')}\n`
}

/** A bar made of these eighths of a cell. As text it would show a seam at each cell. */
const BAR = /^█*[▏▎▍▌▋▊▉]?$/
const eighths = (block: string) => '▏▎▍▌▋▊▉█'.indexOf(block) + 1

function textOf({ column, columns, text, style }: Run, row: number): string {
  const top = BAR_HEIGHT + PADDING + row * CELL.height
  const y = top + CELL.fontSize
  const x = round(PADDING + column * CELL.width)
  const fill = style.color ?? (style.isDim ? COLORS.dim : undefined)
  if (BAR.test(text)) {
    const width = round(([...text].reduce((sum, block) => sum + eighths(block), 0) / 8) * CELL.width)
    return `<rect x="${x}" y="${top + 1}" width="${width}" height="${CELL.height - 3}" fill="${fill ?? COLORS.text}"/>`
  }
  const attributes = [
    `x="${x}" y="${y}" textLength="${round(columns * CELL.width)}" lengthAdjust="spacingAndGlyphs"`,
    ...(fill === undefined ? [] : [`fill="${fill}"`]),
    ...(style.isBold ? ['font-weight="bold"'] : []),
  ]
  return `<text ${attributes.join(' ')}>${escaped(text)}</text>`
}

const round = (number: number) => Number(number.toFixed(1))
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

if (import.meta.main) {
  const { values } = parseArgs({ options: { title: { type: 'string', default: 'terminal' } } })
  process.stdout.write(terminalPicture(readFileSync(0, 'utf8'), values.title))
}
