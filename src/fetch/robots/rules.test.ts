import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import robotsParserModule from 'robots-parser'
import { parseRobots, productToken } from './rules.ts'

/** Its types describe an ES module, which it is not. */
const robotsParser = robotsParserModule as unknown as (typeof robotsParserModule)['default']

interface Case {
  title: string
  robots: string
  path: string
  isAllowed: boolean
}

const cases: Case[] = [
  {
    title: 'reads past a byte order mark',
    robots: '\uFEFFUser-agent: *\nDisallow: /a',
    path: '/a/x',
    isAllowed: false,
  },
  {
    title: 'merges groups of one name (the first)',
    robots: 'User-agent: mybot\nDisallow: /a\n\nUser-agent: other\nDisallow: /z\n\nUser-agent: mybot\nDisallow: /b',
    path: '/a/x',
    isAllowed: false,
  },
  {
    title: 'merges groups of one name (the second)',
    robots: 'User-agent: mybot\nDisallow: /a\n\nUser-agent: other\nDisallow: /z\n\nUser-agent: mybot\nDisallow: /b',
    path: '/b/x',
    isAllowed: false,
  },
  {
    title: 'leaves rules for others to others',
    robots: 'User-agent: mybot\nDisallow: /a\n\nUser-agent: other\nDisallow: /z',
    path: '/z',
    isAllowed: true,
  },
  {
    title: 'lets the longest match win',
    robots: 'User-agent: *\nAllow: /p\nDisallow: /',
    path: '/page',
    isAllowed: true,
  },
  {
    title: 'allows when two rules are equally long',
    robots: 'User-agent: *\nDisallow: /p\nAllow: /p',
    path: '/p',
    isAllowed: true,
  },
  {
    title: 'allows when a wildcard and a prefix are equally long',
    robots: 'User-agent: *\nDisallow: /abc\nAllow: /*bc',
    path: '/abc',
    isAllowed: true,
  },
  {
    title: 'prefers our own group to the one for all',
    robots: 'User-agent: *\nDisallow: /\n\nUser-agent: mybot\nAllow: /',
    path: '/x',
    isAllowed: true,
  },
  {
    title: 'joins agents that only a blank line parts',
    robots: 'User-agent: mybot\n\nUser-agent: *\nDisallow: /',
    path: '/x',
    isAllowed: false,
  },
  {
    title: 'allows everything in our own group with an empty rule',
    robots: 'User-agent: *\nDisallow: /\n\nUser-agent: mybot\nDisallow:',
    path: '/x',
    isAllowed: true,
  },
  {
    title: 'finds our group empty at the end of the file',
    robots: 'User-agent: *\nDisallow: /\n\nUser-agent: mybot\n',
    path: '/x',
    isAllowed: true,
  },
  {
    title: 'compares escapes without case',
    robots: 'User-agent: *\nDisallow: /a%3cd.html',
    path: '/a%3Cd.html',
    isAllowed: false,
  },
  {
    title: 'compares an escape with the bare character',
    robots: 'User-agent: *\nDisallow: /a<d',
    path: '/a%3Cd',
    isAllowed: false,
  },
  {
    title: 'compares an escaped letter with the bare one',
    robots: 'User-agent: *\nDisallow: /%61dmin',
    path: '/admin',
    isAllowed: false,
  },
  {
    title: 'unescapes letters of the path too',
    robots: 'User-agent: *\nDisallow: /admin',
    path: '/%61dmin',
    isAllowed: false,
  },
  {
    title: 'keeps an escaped slash apart from a slash',
    robots: 'User-agent: *\nDisallow: /a/b',
    path: '/a%2Fb',
    isAllowed: true,
  },
  {
    title: 'compares UTF-8 with its escapes',
    robots: 'User-agent: *\nDisallow: /jobs/é',
    path: '/jobs/%C3%A9',
    isAllowed: false,
  },
  {
    title: 'reads rules behind a crawl-delay',
    robots: 'User-agent: mybot\nCrawl-delay: 5\nDisallow: /x',
    path: '/x',
    isAllowed: false,
  },
  {
    title: 'does not let a Sitemap line split a group',
    robots: 'User-agent: mybot\nSitemap: http://a/s.xml\nUser-agent: other\nDisallow: /x',
    path: '/x',
    isAllowed: false,
  },
  {
    title: 'reads a version behind the name',
    robots: 'User-agent: MyBot/2.0\nDisallow: /x',
    path: '/x',
    isAllowed: false,
  },
  {
    title: 'does not take a longer name for ours',
    robots: 'User-agent: MyBotter\nDisallow: /x',
    path: '/x',
    isAllowed: true,
  },
  { title: 'reads lines that end with CR alone', robots: 'User-agent: *\rDisallow: /a', path: '/a', isAllowed: false },
  {
    title: 'takes no rules from an HTML page in place of the file',
    robots: '<!doctype html><html><body>User-agent: *\nDisallow: /</body></html>',
    path: '/x',
    isAllowed: true,
  },
  {
    title: 'takes no rules from an HTML page that shows them line by line',
    robots: '\n<html><pre>\nUser-agent: *\nDisallow: /\n</pre>',
    path: '/x',
    isAllowed: true,
  },
  {
    title: 'ignores comments and spaces',
    robots: ' user-agent : * # all\n DISALLOW : /a # no',
    path: '/a',
    isAllowed: false,
  },
  {
    title: 'ignores rules before any group',
    robots: 'Disallow: /\nUser-agent: *\nDisallow: /b',
    path: '/a',
    isAllowed: true,
  },
  {
    title: 'matches a star in the middle',
    robots: 'User-agent: *\nDisallow: /*/edit',
    path: '/a/b/edit?x',
    isAllowed: false,
  },
  { title: 'matches an end', robots: 'User-agent: *\nDisallow: /*.pdf$', path: '/a.pdf', isAllowed: false },
  {
    title: 'does not match beyond an end',
    robots: 'User-agent: *\nDisallow: /*.pdf$',
    path: '/a.pdf?x',
    isAllowed: true,
  },
  {
    title: 'matches an end the star must reach over',
    robots: 'User-agent: *\nDisallow: /*a$',
    path: '/a/ba',
    isAllowed: false,
  },
  { title: 'matches only the root', robots: 'User-agent: *\nDisallow: /$', path: '/', isAllowed: false },
  { title: 'leaves the rest of the root alone', robots: 'User-agent: *\nDisallow: /$', path: '/a', isAllowed: true },
  {
    title: 'takes an escaped star literally',
    robots: 'User-agent: *\nDisallow: /a%2Ab',
    path: '/a*b',
    isAllowed: false,
  },
  {
    title: 'takes an escaped star for no wildcard',
    robots: 'User-agent: *\nDisallow: /a%2Ab',
    path: '/axb',
    isAllowed: true,
  },
  {
    title: 'lets itself be read',
    robots: 'User-agent: *\nDisallow: /',
    path: '/robots.txt',
    isAllowed: true,
  },
  {
    title: 'compares a tilde with its escape',
    robots: 'User-agent: *\nDisallow: /%7Ejoe/',
    path: '/~joe/x',
    isAllowed: false,
  },
  {
    title: 'finds our name in a whole user agent',
    robots: 'User-agent: Mozilla/5.0 (compatible; MyBot/2.0; +https://x.test)\nDisallow: /x',
    path: '/x',
    isAllowed: false,
  },
  {
    title: 'does not take a browser for us',
    robots: 'User-agent: Mozilla/5.0\nDisallow: /x',
    path: '/x',
    isAllowed: true,
  },
  {
    title: 'skips lines that are no rules',
    robots: 'User-agent: *\nDisallow /x\n: /x\nNoindex: /x\n\0\nDisallow: /y',
    path: '/x',
    isAllowed: true,
  },
  {
    title: 'reads rules without a slash before a star',
    robots: 'User-agent: *\nDisallow: *.pdf',
    path: '/a/b.pdf',
    isAllowed: false,
  },
  {
    title: 'has no rules for a crawler without a group when there is none for all',
    robots: 'User-agent: other\nDisallow: /',
    path: '/x',
    isAllowed: true,
  },
  {
    title: 'does not add the group for all to our own',
    robots: 'User-agent: *\nDisallow: /a\nUser-agent: mybot\nDisallow: /b',
    path: '/a',
    isAllowed: true,
  },
  {
    title: 'tells large letters in a path from small ones',
    robots: 'User-agent: *\nDisallow: /A',
    path: '/a',
    isAllowed: true,
  },
  { title: 'matches the query', robots: 'User-agent: *\nDisallow: /*?sort=', path: '/list?sort=up', isAllowed: false },
]

for (const { title, robots, path, isAllowed } of cases) {
  test(title, () => assert.equal(parseRobots(robots, 'mybot').find(path)?.isAllowed ?? true, isAllowed))
}

test('decides the labelled sample as labelled', () => {
  const file = new URL('../../../test/data/robots-cases.json', import.meta.url)
  const sample: { name: string; robots: string; path: string; product_token: string; allowed: boolean }[] = JSON.parse(
    readFileSync(file, 'utf8'),
  )
  for (const { name, robots, path, product_token, allowed } of sample)
    assert.equal(parseRobots(robots, product_token).find(path)?.isAllowed ?? true, allowed, name)
})

test('reads the same for a full user agent as for its product token', () => {
  const text = 'User-agent: mybot\nDisallow: /x'
  for (const agent of ['MyBot', 'mybot/1.0', 'Mozilla/5.0 (compatible; MyBot/2.0; +https://x.test)'])
    assert.equal(parseRobots(text, agent).find('/x')?.isAllowed, false, agent)
  assert.equal(parseRobots('User-agent: 42\nDisallow: /', '').find('/x'), undefined, 'no name is nobody')
})

test('reports which group and which line decided', () => {
  const rules = parseRobots('# hello\nUser-agent: MyBot\nDisallow: /a\nAllow: /a/b # but this', 'mybot')
  assert.equal(rules.group, 'mybot')
  const { line, text } = rules.find('/a/b')!
  assert.deepEqual({ line, text }, { line: 4, text: 'Allow: /a/b # but this' })
  assert.equal(parseRobots('User-agent: x\nDisallow: /', 'mybot').group, undefined)
})

test('collects sitemaps of the whole file and the longest crawl-delay of our group', () => {
  const text =
    'Sitemap: https://a/1.xml\nUser-agent: *\nCrawl-delay: 1.5\nUser-agent: x\nCrawl-delay: 99\nsitemap:/2.xml'
  const rules = parseRobots(`${text}\nUser-agent: *\nDisallow: /\nCrawl-delay: nonsense`, 'mybot')
  assert.deepEqual(rules.sitemaps, ['https://a/1.xml', '/2.xml'])
  assert.equal(rules.crawlDelayMs, 99_000) // "User-agent: x" joins the list of agents: a crawl-delay does not end it
})

test('finds the product token in common user agents', () => {
  assert.equal(productToken('Sluice/0.1 (+https://example.org)'), 'sluice')
  assert.equal(productToken('Mozilla/5.0 (compatible; MyBot/2.0; +https://x)'), 'mybot')
  assert.equal(productToken('my_bot-2'), 'my_bot-')
})

test('agrees with robots-parser wherever that is right', () => {
  const piece = fc.constantFrom('/', '*', '$', 'a', 'b', 'ab', '.php', '?', '=', 'é')
  const pattern = fc.array(piece, { maxLength: 6 }).map((pieces) => `/${pieces.join('')}`)
  const rule = fc.tuple(fc.constantFrom('Allow', 'Disallow'), pattern).map(([key, value]) => `${key}: ${value}`)
  const path = fc
    .array(fc.constantFrom('/', 'a', 'b', 'ab', '.php', '?', '='), { maxLength: 8 })
    .map((p) => `/${p.join('')}`)
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 8 }), path, (rules, at) => {
      const text = ['User-agent: *', ...rules].join('\n')
      const reference = robotsParser('http://h/robots.txt', text).isAllowed(`http://h${at}`, 'mybot')
      const url = new URL(`http://h${at}`)
      assert.equal(parseRobots(text, 'mybot').find(url.pathname + url.search)?.isAllowed ?? true, reference)
    }),
    { numRuns: 3000 },
  )
})

test('stays fast with thousands of rules and with malicious wildcards', () => {
  const many = Array.from({ length: 20_000 }, (_, i) => `Disallow: /section/${i}/private`)
  const stars = Array.from({ length: 100 }, (_, i) => `Disallow: /${'*a'.repeat(20)}${i}b`)
  const rules = parseRobots(['User-agent: *', ...many, ...stars].join('\n'), 'mybot')
  const path = `/section/12345/${'a'.repeat(2000)}`
  const before = process.cpuUsage() // not the clock: other load on this machine must not fail the test
  for (let i = 0; i < 100; i++) rules.find(path)
  const eachMs = process.cpuUsage(before).user / 1000 / 100
  assert.ok(eachMs < 5, `${eachMs} ms a check`)
})
