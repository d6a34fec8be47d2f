/** Wraps the notes of a help text to the width of the terminal; the command-line parser wraps only its own parts. */

/** Paragraphs with a line that is too long are rewrapped. Indented lines (examples, tables) are left alone. */
export function wrapParagraphs(text: string, width: number): string {
  return text
    .split('\n\n')
    .map((paragraph) => {
      const lines = paragraph.split('\n')
      const isProse = lines.every((line) => !/^\s/.test(line))
      return isProse && lines.some((line) => line.length > width) ? fill(paragraph, width) : paragraph
    })
    .join('\n\n')
}

function fill(paragraph: string, width: number): string {
  const end = /\n?$/.exec(paragraph)![0]
  const lines: string[] = []
  let line = ''
  for (const word of paragraph.trim().split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, line].join('\n') + end
}
