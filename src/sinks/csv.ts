/**
 * CSV according to RFC 4180: a header, CRLF between records (as written by Excel and Python's csv module), quotes only where they
 * are needed and doubled inside, UTF-8 without a byte order mark. Nested values are JSON, absent ones are empty, numbers are
 * plain.
 */
import { cell, rowEncoder } from './csv-row.ts'
import { outputLost } from './file.ts'
import { type LineFormat, LineSink } from './lines.ts'

export interface CsvOptions {
  path: string
  name?: string
  /** Fields of the item, in column order. Empty: those of the first item; fields that only later items have are left out. */
  columns: readonly string[]
  /**
   * Puts ' before text that a spreadsheet would run as a formula (it starts with = + - @ tab CR LF). Default off, because the
   * cell then no longer contains the text of the page. Numbers are left alone.
   */
  formulaSafe?: boolean
  /** Default CRLF. */
  lineEnd?: '\r\n' | '\n'
}

export function createCsvSink(options: CsvOptions): LineSink {
  return new LineSink(csvFormat(options))
}

function csvFormat(options: CsvOptions): LineFormat {
  const { path, name = 'csv', lineEnd = '\r\n', formulaSafe = false } = options
  const given = options.columns
  let columns: readonly string[] = []
  let encodeRow: (item: object) => string

  function use(names: readonly string[]): void {
    columns = names
    encodeRow = rowEncoder({ columns, formulaSafe })
  }
  const header = () => columns.map(cell).join(',') + lineEnd

  return {
    name,
    path,
    lineEnd,
    begin() {
      if (given.length === 0) return ''
      use(given)
      return header()
    },
    resume(head) {
      if (head === '') return // nothing was confirmed except that the run started
      const found = firstRecord(head)
      if (given.length > 0 && (found.length !== given.length || found.some((column, i) => column !== given[i]))) {
        throw outputLost(path, `its columns are ${found.join(',')}, the scraper’s are now ${given.join(',')}`)
      }
      use(found)
    },
    encode({ json, value = JSON.parse(json) as object }) {
      if (columns.length > 0) return encodeRow(value)
      use(Object.keys(value))
      return header() + encodeRow(value)
    },
  }
}

/** The cells of the first record: the columns of a resumed file. */
function firstRecord(text: string): string[] {
  const cells: string[] = []
  const pattern = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|\n|$)/y
  for (;;) {
    const match = pattern.exec(text)
    if (match === null) return cells
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '')
    if (match[3] !== ',') return cells
  }
}
