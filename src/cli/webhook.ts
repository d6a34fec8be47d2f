/** `sluice webhook`: who is told of what happens, by a server (`sluice serve`). */
import type { Command } from 'commander'
import type { SqlDatabase } from '../orchestrator/store/sql.ts'
import type { EventFilter, Mode, Subscription } from '../webhooks/contract.ts'
import type { Subscriptions } from '../webhooks/subscriptions.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, placesOf } from './run-place.ts'

interface WebhookFlags extends ReadFlags, PlaceFlags {
  events?: string[]
  mode?: string
  name?: string
  scraper?: string[]
  keyword?: string[]
}

const HELP = `
A server delivers: \`sluice serve\` on the same --store. Requests are signed as Standard Webhooks say; the secret is shown once.

Examples:
  sluice webhook add https://example.com/hook --events run.failed schedule.*
  sluice webhook add https://example.com/jobs --name jobs --events job.created --keyword rust go --mode daily
  sluice webhook test example.com
  sluice webhook list`

export function defineWebhook(program: Command): void {
  const webhook = program.command('webhook').description('tell others what happens').addHelpText('after', HELP)
  const commands = [
    webhook.command('list').description('list webhooks and how they are').action(run(listThem)),
    webhook
      .command('add <url>')
      .description('send events to a URL')
      .option('--events <type...>', 'types, or groups such as run.*', ['*'])
      .option('--mode <mode>', 'instant, or all of a time at once: hourly, daily', 'instant')
      .option('--name <name>', 'default: the host of the URL')
      .option('--scraper <name...>', 'only what concerns these scrapers')
      .option('--keyword <word...>', 'only items with one of these words')
      .action(run(add)),
    webhook.command('test <name>').description('send an event of type webhook.test, by the server').action(run(test)),
    webhook.command('remove <name>').description('remove it with its deliveries').action(run(remove)),
  ]
  for (const command of commands) {
    addReadFlags(command, 'the webhooks')
    addPlaces(command)
  }
}

type Work = (
  parts: { subscriptions: Subscriptions; db: SqlDatabase },
  flags: WebhookFlags,
  word: string,
) => Promise<void>

/** Commander hands over the argument first where there is one. */
function run(work: Work) {
  return async (...given: unknown[]) => {
    const [word, flags] = (typeof given[0] === 'string' ? given : ['', given[0]]) as [string, WebhookFlags]
    const [{ openServeDatabase }, { Subscriptions }] = await Promise.all([
      import('../app/serve/database.ts'),
      import('../webhooks/subscriptions.ts'),
    ])
    const { places } = await placesOf(flags)
    const { store, db } = await openServeDatabase(places)
    await using _ = store
    await work({ subscriptions: new Subscriptions(db), db }, flags, word)
  }
}

const listThem: Work = async ({ subscriptions }, flags) => {
  const all = await subscriptions.list()
  if (flags.json) return printJson({ webhooks: all })
  const { printable, table } = await import('./style.ts')
  const rows = all.map((one) => [printable(one.name), printable(one.url), one.events.join(' '), one.mode, stateOf(one)])
  print(
    rows.length === 0
      ? 'no webhooks; add one: sluice webhook add URL --events run.failed'
      : table([['name', 'url', 'events', 'mode', 'state'], ...rows]),
  )
}

function stateOf({ isActive, disabledReason, failingSinceMs }: Subscription): string {
  if (!isActive) return `off${disabledReason === undefined ? '' : `: ${disabledReason}`}`
  return failingSinceMs === undefined ? 'on' : `fails since ${new Date(failingSinceMs).toISOString()}`
}

const add: Work = async ({ subscriptions }, flags, url) => {
  const [{ ScrapeError }, { MODES }] = await Promise.all([
    import('../core/errors.ts'),
    import('../webhooks/contract.ts'),
  ])
  if (!(MODES as readonly string[]).includes(flags.mode!))
    throw new ScrapeError('E_USAGE', `--mode takes ${MODES.join(', ')}, got ${JSON.stringify(flags.mode)}`)
  const filter: EventFilter = {
    ...(flags.scraper === undefined ? {} : { scrapers: flags.scraper }),
    ...(flags.keyword === undefined ? {} : { keywords: flags.keyword }),
  }
  const { subscription, secret } = await subscriptions.create({
    name: flags.name ?? URL.parse(url)?.host.replace(':', ' ') ?? url,
    url,
    events: flags.events!,
    filter,
    mode: flags.mode as Mode,
    isActive: true,
  })
  if (flags.json) printJson({ ...subscription, secret })
  else if (flags.quiet) print(secret)
  else
    print(`${subscription.name} is told of ${subscription.events.join(', ')}\nits secret, shown this once: ${secret}`)
}

const test: Work = async ({ subscriptions, db }, flags, word) => {
  const { eventRecorder, testEvent } = await import('../webhooks/record.ts')
  const subscription = await subscriptions.get(word)
  const record = eventRecorder({ dialect: db.dialect })
  await db.transaction((rows) => record(rows, [testEvent(subscription)]))
  if (flags.json) printJson({ queued: 'webhook.test', webhook: subscription.id })
  else if (!flags.quiet) print('the server sends it as soon as it looks (twice a second)')
}

const remove: Work = async ({ subscriptions }, flags, word) => {
  await subscriptions.remove(word)
  if (flags.json) printJson({ removed: word })
  else if (!flags.quiet) print(`${word} is gone`)
}
