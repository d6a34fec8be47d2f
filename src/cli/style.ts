/** Output of the command line: colours if enabled, human-readable numbers, aligned columns. */
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

/**
 * Rows as aligned columns, two spaces apart; `right` lists the numeric columns (from 0). Colour codes do not affect the
 * alignment.
 */
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
