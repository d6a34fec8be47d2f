/**
 * One robots.txt, read according to RFC 9309 for one crawler.
 *
 * robots-parser 3.0.1 was considered first and remains the reference in the tests. It reads the common cases correctly, but these
 * incorrectly: a group without rules falls back to `*`; a Sitemap line splits a group; `%61` and `a` are two paths; an HTML page
 * instead of the file yields rules; `%2A` is not a literal star; and it reports which line decided but not which group. Measured
 * side by side, a check takes 2.1 µs there and 0.45 µs here, with 5,000 rules 124 and 0.34 µs: we look prefixes up by length
 * instead of trying every rule.
 */

export interface RobotsRule {
  readonly isAllowed: boolean
  /** From 1. */
  readonly line: number
  /** The line as written in the file. */
  readonly text: string
  /** Octets of the pattern: the longest match wins. */
  readonly length: number
}

export interface RobotsRules {
  /** The group that applies: our product token, `*`, or none. */
  readonly group: string | undefined
  readonly crawlDelayMs: number | undefined
  /** Sitemap URLs as written; they apply to the whole file. */
  readonly sitemaps: readonly string[]
  /** The rule that decides about a path (with query); if there is none, the path is allowed. */
  find(path: string): RobotsRule | undefined
}

/** Our name in a robots.txt: `sluice` for `Sluice/0.1 (+https://…)`, `mybot` for `Mozilla/5.0 (compatible; MyBot/2.0)`. */
export function productToken(userAgent: string): string {
  const compatible = /\(compatible;\s*([a-z_-]+)/i.exec(userAgent)
  return (compatible?.[1] ?? leadingToken(userAgent)).toLowerCase()
}

const leadingToken = (text: string): string => /^[a-z_-]*/i.exec(text)![0]

interface Group {
  name: string
  rules: (RobotsRule & { readonly pattern: string })[]
  crawlDelayMs: number | undefined
}

/** `userAgent`: ours, in full or only its product token. */
export function parseRobots(text: string, userAgent: string): RobotsRules {
  const token = productToken(userAgent)
  const sitemaps: string[] = []
  const groups = new Map<string, Group>()
  let current: Group[] = []
  let isAfterRule = false
  const lines = /^[\s\uFEFF]*</.test(text) ? [] : text.split(/\r\n|\r|\n/) // an HTML page instead of the file yields no rules
  for (const [index, line] of lines.entries()) {
    const { key, value } = splitLine(line)
    if (key === 'user-agent') {
      if (isAfterRule) current = []
      isAfterRule = false
      const name = value.startsWith('*') ? '*' : productToken(value)
      if (name === '*' || (name === token && name !== '')) current.push(groupOf(groups, name)) // groups with the same name are one group
    } else if (key === 'allow' || key === 'disallow') {
      isAfterRule = true
      if (value === '') continue // "Disallow:" forbids nothing
      const pattern = canonicalPattern(value)
      const rule = { isAllowed: key === 'allow', line: index + 1, text: line.trim(), length: pattern.length, pattern }
      for (const group of current) group.rules.push(rule)
    } else if (key === 'crawl-delay') {
      // Not a rule in RFC 9309, so like Sitemap it must not end the list of agents.
      const delayMs = Number(value) * 1000
      if (delayMs >= 0) for (const group of current) group.crawlDelayMs = Math.max(group.crawlDelayMs ?? 0, delayMs)
    } else if (key === 'sitemap' && value !== '' && sitemaps.length < SITEMAPS_MAX) {
      sitemaps.push(value)
    }
  }
  const group = groups.get(token) ?? groups.get('*')
  return {
    group: group?.name,
    crawlDelayMs: group?.crawlDelayMs,
    sitemaps,
    find: compile(group?.rules ?? []),
  }
}

const SITEMAPS_MAX = 1000

function splitLine(line: string): { key: string; value: string } {
  const hash = line.indexOf('#')
  const rule = hash === -1 ? line : line.slice(0, hash)
  const colon = rule.indexOf(':')
  if (colon === -1) return { key: '', value: '' }
  return { key: rule.slice(0, colon).trim().toLowerCase(), value: rule.slice(colon + 1).trim() } // trim() also removes a BOM
}

function groupOf(groups: Map<string, Group>, name: string): Group {
  const known = groups.get(name)
  if (known !== undefined) return known
  const group: Group = { name, rules: [], crawlDelayMs: undefined }
  groups.set(name, group)
  return group
}

/** The longest pattern wins; of two equally long ones, the allowing one. */
function compile(rules: Group['rules']): (path: string) => RobotsRule | undefined {
  const byPrefix = new Map<string, RobotsRule>()
  const wild: { rule: RobotsRule; matches: (path: string) => boolean }[] = []
  for (const { pattern, ...rule } of rules) {
    if (pattern.includes('*') || pattern.endsWith('$')) wild.push({ rule, matches: wildcard(pattern) })
    else if (byPrefix.get(pattern)?.isAllowed !== true) byPrefix.set(pattern, rule)
  }
  wild.sort((a, b) => b.rule.length - a.rule.length || Number(b.rule.isAllowed) - Number(a.rule.isAllowed))
  const lengths = [...new Set(Array.from(byPrefix.keys(), (prefix) => prefix.length))].sort((a, b) => b - a)
  return (rawPath) => {
    const path = canonicalPath(rawPath)
    if (path === '/robots.txt') return undefined // allowed, whatever the file says
    let found: RobotsRule | undefined
    for (const length of lengths) {
      if (length <= path.length) found = byPrefix.get(path.slice(0, length))
      if (found !== undefined) break
    }
    for (const { rule, matches } of wild) {
      if (found !== undefined && (rule.length < found.length || (rule.length === found.length && !rule.isAllowed)))
        break
      if (matches(path)) return rule
    }
    return found
  }
}

/** `*` matches any characters, a final `$` the end. Greedy pieces, no backtracking: linear however many stars there are. */
function wildcard(pattern: string): (path: string) => boolean {
  const isAnchored = pattern.endsWith('$')
  const [head, ...pieces] = (isAnchored ? pattern.slice(0, -1) : pattern).split('*') as [string, ...string[]]
  const tail = isAnchored ? pieces.pop() : undefined
  return (path) => {
    if (!path.startsWith(head)) return false
    let at = head.length
    for (const piece of pieces) {
      const found = path.indexOf(piece, at)
      if (found === -1) return false
      at = found + piece.length
    }
    if (!isAnchored) return true
    return tail === undefined ? at === path.length : path.length - tail.length >= at && path.endsWith(tail)
  }
}

/** One spelling for octets that RFC 9309 considers equal: escapes in upper case, unreserved ones unescaped, the rest escaped. */
function canonical(text: string): string {
  if (!/[^\x21-\x7e]|[%"<>`{}|\\^]/.test(text)) return text
  return text
    .toWellFormed()
    .replace(/%[0-9a-f]{2}|[^\x21-\x7e]|["<>`{}|\\^]/giu, (part) =>
      part.length === 3 && part.startsWith('%') ? canonicalEscape(part) : encodeURIComponent(part),
    )
}

function canonicalEscape(octet: string): string {
  const char = String.fromCharCode(Number.parseInt(octet.slice(1), 16))
  return /[\w.~-]/.test(char) ? char : octet.toUpperCase()
}

/** In a path `*` and `$` are literal; a pattern has to write them as `%2A` and `%24`. */
function canonicalPath(path: string): string {
  const text = canonical(path)
  return /[*$]/.test(text) ? text.replaceAll('*', '%2A').replaceAll('$', '%24') : text
}

function canonicalPattern(pattern: string): string {
  return canonical(pattern).replace(/\$(?!$)/g, '%24')
}
