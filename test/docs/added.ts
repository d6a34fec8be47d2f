/** Everything the tests add to a page without showing it to the reader, and why. Hosts are in stand-ins.ts. */

/** Arguments added to a command. `site` is the demo shop, `boards` the mocked job boards. */
export const ADDED_WORDS: readonly { after: RegExp; add: (at: Places, name: string) => string; why: string }[] = [
  {
    after: /\bsluice (?:run|start|check) books\b(?![^\n]*--site)/g,
    add: ({ site }) => ` --site ${site}`,
    why: 'the scraper goes to its far site unless it is told another',
  },
  {
    after: /\bsluice schedule add books\b/g,
    add: ({ site }) => ` --arg site=${site}`,
    why: 'the same for the runs of a schedule',
  },
  {
    after: /"scraper": ?"books", ?"args": ?\{/g,
    add: ({ site }) => `"site":"${site}",`,
    why: 'the same for runs that are started through the API',
  },
  {
    after: /"scraper": ?"books"(?=, ?"region"|\})/g,
    add: ({ site }) => `,"args":{"site":"${site}"}`,
    why: 'the same for those without arguments',
  },
  {
    after: /\bsluice (?:run|submit) (greenhouse|lever|linkedin)\b/g,
    add: ({ boards }, name) => ` --arg site=${boards(name)}`,
    why: 'the boards are far sites, too',
  },
  {
    after: /"scraper": ?"(greenhouse|lever|linkedin)", ?"args": ?\{/g,
    add: ({ boards }, name) => `"site":"${boards(name)}",`,
    why: 'the same through the API',
  },
  {
    after: /\bsluice serve\b(?![^\n]*--port)/g,
    add: ({ port }) => ` --port ${port}`,
    why: 'two pages run at the same time, and 7700 may be taken',
  },
  {
    after: /\bredis-cli\b/g,
    add: ({ redis }) => ` -u ${redis}`,
    why: 'the Redis of the page is not at port 6379',
  },
]

interface Places {
  site: string
  port: number
  redis: string
  boards: (name: string) => string
}

/** The environment of every command. */
export const ADDED_ENV = (at: { allowed: readonly string[]; chrome: string | undefined }): NodeJS.ProcessEnv => ({
  SLUICE_RPS: '0', // a loopback site needs no rate limit; a page that says --rps has it
  SLUICE_DELAY: '0', // nor do the job boards, which pause for seconds
  SLUICE_ALLOW_ADDRESS: at.allowed.join(','), // the stand-ins for public sites are on the private network
  SLUICE_CHROME: at.chrome, // where Chromium was unpacked, if the machine has none
  NO_COLOR: '1',
  NODE_TEST_CONTEXT: undefined,
})
