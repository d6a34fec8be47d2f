/** The fenced blocks of a page, and the hidden comments before them. */

export interface Block {
  kind: string
  /** The text after the kind: a path, or `exit=N`. */
  word: string
  text: string
  line: number
  page: string
  /** `<!-- with: before … after -->`: the block replaces `…`. */
  context: string | undefined
  /** `<!-- checked only: why -->` */
  notRun: string | undefined
  /** `<!-- peer -->`: code of another product, which is only parsed. */
  isPeer: boolean
  /** `<!-- picture -->`: text that no command prints. */
  isPicture: boolean
}

const FENCE = /^( *)```([^\s`]*)[ \t]*(.*)\n([\s\S]*?)^\1```$/gm
const COMMENT = /<!-- (with|checked only|peer|picture)(?:: ((?:(?!-->)[\s\S])*))? -->\s*$/

/** A comment `<!-- before: commands -->` counts as a block of `sh`: readers need not see it, but the page needs it to run. */
export function blocksOf(page: string, markdown: string): Block[] {
  const seen = markdown.replace(
    /^<!-- before:\s([\s\S]*?)\s-->$/gm,
    (_, commands: string) => `\`\`\`sh\n${commands}\n\`\`\``,
  )
  return [...seen.matchAll(FENCE)].map(({ index, 1: indent, 2: kind, 3: word, 4: text }) => {
    const before = seen.slice(0, index)
    const [, name, value] = COMMENT.exec(before) ?? []
    return {
      kind: kind!,
      word: word!,
      text: text!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      line: before.split('\n').length,
      page,
      context: name === 'with' ? value : undefined,
      notRun: name === 'checked only' ? value : undefined,
      isPeer: name === 'peer',
      isPicture: name === 'picture',
    }
  })
}

/** Each line must appear in the output, in this order. `…` matches anything, and varying values match similar ones. */
export function missingLine(output: string, expected: string): string | undefined {
  const lines = output.split('\n')
  let at = 0
  for (const line of expected.trimEnd().split('\n')) {
    const pattern = new RegExp(`^${line.split('…').map(loosely).join('.*')}\\s*$`)
    const found = lines.findIndex((printed, i) => i >= at && pattern.test(printed))
    if (found === -1) return line
    at = found + 1
  }
  return undefined
}

/** Ids, times, durations, rates, addresses: different every time. */
const VARYING =
  /(\d{8}_\d{6}_\w{4}|\d{4}-\d\d-\d\dT[\d:.]+Z|https?:\/\/[\w.]+(?::\d+)?|[\d.,]+(?= (?:ms|s)\b)|[\d.,]+(?=\/s\b)|\bslk_\w+|(?<="uptimeSeconds":)\d+|(?<="worker":")[^"]+)/

const loosely = (text: string) =>
  text
    .split(VARYING)
    .map((part, i) => (i % 2 === 1 ? '[^\\s"]+' : RegExp.escape(part)))
    .join('')
