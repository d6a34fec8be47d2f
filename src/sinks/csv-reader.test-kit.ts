/** A CSV reader for tests, strictly RFC 4180 and character by character: slow, and unlike the writer. */
export function parseCsv(text: string, lineEnd = '\r\n'): string[][] {
  const records: string[][] = []
  let record: string[] = []
  let at = 0
  while (at < text.length) {
    let cell = ''
    if (text[at] === '"') {
      for (at++; ; at++) {
        if (at >= text.length) throw new Error('a quoted cell has no end')
        if (text[at] === '"' && text[at + 1] === '"') at++
        else if (text[at] === '"') break
        cell += text[at]
      }
      at++
    } else {
      for (; at < text.length && text[at] !== ',' && !text.startsWith(lineEnd, at); at++) {
        if (text[at] === '"' || text[at] === '\n' || text[at] === '\r') throw new Error(`bare ${text[at]} at ${at}`)
        cell += text[at]
      }
    }
    record.push(cell)
    if (text[at] === ',') {
      at++
      continue
    }
    if (!text.startsWith(lineEnd, at)) throw new Error(`a record ends in the middle at ${at}`)
    at += lineEnd.length
    records.push(record)
    record = []
  }
  if (record.length > 0) throw new Error('the last record has no end')
  return records
}
