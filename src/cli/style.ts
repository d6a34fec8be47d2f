/** How the command line writes: colour where it is wanted, numbers as people read them, columns that line up. */
import { displayWidth, padEnd, padStart } from '../observe/terminal.ts'

export {
  formatBytes,
  formatCount,
  formatDuration,
  formatMs,
  formatRate,
  formatRatio,
  formatTime,
  plural,
} from '../observe/format.ts'
export {
  bar,
  displayWidth,
  type OutputStream,
  type Paint,
  padEnd,
  padStart,
  paintFor,
  plain,
  printable,
  printableData,
  self,
  truncate,
  truncateMiddle,
} from '../observe/terminal.ts'

/** Rows as aligned columns, two spaces between; `right` names the columns (from 0) of numbers. Colours keep their place. */
export function table(
  rows: readonly (readonly string[])[],
  options: { right?: readonly number[]; indent?: number } = {},
): string {
  const widths: number[] = []
  for (const row of rows) {
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, displayWidth(cell))
    })
  }
  const isRight = new Set(options.right)
  const indent = ' '.repeat(options.indent ?? 0)
  return rows
    .map(
      (row) =>
        indent +
        row
          .map((cell, i) => (isRight.has(i) ? padStart : padEnd)(cell, widths[i]!))
          .join('  ')
          .trimEnd(),
    )
    .join('\n')
}
