/** `sluice webhook`: manages the webhooks of a server (`sluice serve`). */
import type { Command } from 'commander'
import { verbatim } from '../core/redact.ts'
import type { SqlDatabase } from '../drivers/sql.ts'
import type { Delivery, EventFilter, Mode, Subscription } from '../server/webhooks/contract.ts'
import type { DeliveryLog } from '../server/webhooks/delivery-log.ts'
import type { Subscriptions } from '../server/webhooks/subscriptions.ts'
import { addReadFlags, note, print, printData, printJson, type ReadFlags, shellWord } from './output.ts'
import { addPlaces, type PlaceFlags, placesOf } from './run-place.ts'

interface WebhookFlags extends ReadFlags, PlaceFlags {
  events?: string[]
  mode?: string
  name?: string
  scraper?: string[]
  keyword?: string[]
  wait?: string
  grace?: string
}

const DELIVERIES_SHOWN = 20
const POLL_MS = 200

const HELP = `
Deliveries need a server: \`sluice serve\` on the same --store. Requests are signed (Standard Webhooks); the secret is shown only once.

Examples:
  sluice webhook add https://example.com/hook --events run.failed schedule.*
  sluice webhook add https://example.com/jobs --name jobs --events job.created --keyword rust go --mode daily
  sluice webhook test example.com
  sluice webhook deliveries example.com
  sluice webhook rotate example.com --grace 24h
  sluice webhook list`

export function defineWebhook(program: Command): void {
  const webhook = program.command('webhook').description('manage webhooks').addHelpText('after', HELP)
  const commands = [
    webhook.command('list').description('list webhooks and their state').action(run(listThem)),
    webhook
      .command('add <url>')
      .description('send events to a URL')
      .option('--events <type...>', 'event types, or groups such as run.*', ['*'])
      .option('--mode <mode>', 'instant, or batched: hourly, daily', 'instant')
      .option('--name <name>', 'name of the webhook; default: the host of the URL')
      .option('--scraper <name...>', 'only events of these scrapers')
      .option('--keyword <word...>', 'only items that contain one of these words')
      .action(run(add)),
    webhook
      .command('test <name>')
      .description('let the server send an event of type webhook.test, and show the result')
      .option('--wait <duration>', 'how long to wait for the result; 0s = do not wait', '10s')
      .action(run(test)),
    webhook
      .command('deliveries <name>')
      .description(`list the last ${DELIVERIES_SHOWN} deliveries and their results`)
      .action(run(listDeliveries)),
    webhook
      .command('rotate <name>')
      .description('rotate the secret: create a new one and print it (only once); the old one also signs for a while')
      .option('--grace <duration>', 'how long deliveries carry both signatures', '24h')
      .action(run(rotate)),
    webhook.command('remove <name>').description('remove a webhook and its deliveries').action(run(remove)),
  ]
  for (const command of commands) {
    addReadFlags(command, 'the webhooks')
    addPlaces(command)
  }
}

type Work = (
  parts: { subscriptions: Subscriptions; log: DeliveryLog; db: SqlDatabase },
  flags: WebhookFlags,
  word: string,
) => Promise<void>

/** Commander passes the argument first if there is one. */
function run(work: Work) {
  return async (...given: unknown[]) => {
    const [word, flags] = (typeof given[0] === 'string' ? given : ['', given[0]]) as [string, WebhookFlags]
    const [{ openServeDatabase }, { DeliveryLog }, { Subscriptions }] = await Promise.all([
      import('../app/serve/server/database.ts'),
      import('../server/webhooks/delivery-log.ts'),
      import('../server/webhooks/subscriptions.ts'),
    ])
    const { places } = await placesOf(flags)
    const { store, db } = await openServeDatabase(places)
    await using _ = store
    await work({ subscriptions: new Subscriptions(db), log: new DeliveryLog(db), db }, flags, word)
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
    import('../server/webhooks/contract.ts'),
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
  await notePrivate(url)
  if (flags.json) printJson(verbatim({ ...subscription, secret }))
  else if (flags.quiet) printData(secret)
  else
    printData(
      `${subscription.name} receives ${subscription.events.join(', ')}\nits secret, only shown this once: ${secret}`,
    )
}

/** Only the server knows which addresses it may reach. */
async function notePrivate(url: string): Promise<void> {
  const { refusedLiteral } = await import('../fetch/net/address.ts')
  const target = new URL(url)
  if (refusedLiteral(target, { allowPrivate: false, allowAddresses: [] }) !== null)
    note(`note: ${target.host} is a private address; a server only sends to it with --allow-address ${target.host}`)
}

const test: Work = async ({ subscriptions, log, db }, flags, word) => {
  const [{ eventRecorder, testEvent }, { ScrapeError }, { parseDurationMs }] = await Promise.all([
    import('../server/webhooks/record.ts'),
    import('../core/errors.ts'),
    import('../core/options.ts'),
  ])
  const waitMs = parseDurationMs(flags.wait!)
  if (Number.isNaN(waitMs))
    throw new ScrapeError('E_USAGE', `--wait takes a time such as 10s, got ${JSON.stringify(flags.wait)}`)
  const subscription = await subscriptions.get(word)
  if (!subscription.isActive)
    throw new ScrapeError('E_OPTION', `webhook ${subscription.name} is turned off`, {
      fix: 'Turn it on with PUT /v1/webhooks/ID, isActive true.',
    })
  const record = eventRecorder({ dialect: db.dialect })
  await db.transaction((rows) => record(rows, [testEvent(subscription)]))
  const made = (await log.deliveries(subscription.id, { max: 50 })).find(({ type }) => type === 'webhook.test')!
  const ended = await endOf(log, made, waitMs)
  if (ended.state === 'dead') process.exitCode = 1
  if (flags.json) printJson(shownDelivery(ended))
  else if (!flags.quiet) print(await endText(ended, subscription.name))
}

/** The delivery once it has ended, or its state when the time is up. */
async function endOf(log: DeliveryLog, made: Delivery, waitMs: number): Promise<Delivery> {
  const { setTimeout: pause } = await import('node:timers/promises')
  let now = made
  for (const untilMs = Date.now() + waitMs; now.nextAtMs !== undefined && Date.now() < untilMs; ) {
    await pause(Math.min(POLL_MS, waitMs))
    now = (await log.delivery(made.id)) ?? now
  }
  return now
}

async function endText({ state, status, durationMs, error }: Delivery, name: string): Promise<string> {
  const { printable } = await import('./style.ts')
  if (state === 'delivered') return `delivered: answered ${status} in ${durationMs} ms`
  if (state === 'dead') return `not delivered: ${printable(error ?? 'the webhook was turned off')}`
  return `not sent yet: is a server (\`sluice serve\`) running on this store? Check later: sluice webhook deliveries ${shellWord(name)}`
}

const listDeliveries: Work = async ({ subscriptions, log }, flags, word) => {
  const { id } = await subscriptions.get(word)
  const found = await log.deliveries(id, { max: DELIVERIES_SHOWN })
  if (flags.json) return printJson({ deliveries: found.map(shownDelivery) })
  const { printable, table } = await import('./style.ts')
  const rows = found.map(({ createdAtMs, type, state, attempts, status, error, nextAtMs }) => [
    timeOf(createdAtMs)!,
    type,
    state === 'failed' ? `failed, again at ${timeOf(nextAtMs)}` : state,
    String(attempts),
    String(status ?? '–'),
    printable(error ?? ''),
  ])
  print(
    rows.length === 0
      ? 'nothing was sent yet'
      : table([['time', 'event', 'state', 'tries', 'status', 'error'], ...rows]),
  )
}

const rotate: Work = async ({ subscriptions }, flags, word) => {
  const { graceMsOf } = await import('./grace.ts')
  const { secret, oldUntilMs } = await subscriptions.rotateSecret(word, await graceMsOf(flags.grace!))
  const oldUntil = timeOf(oldUntilMs)
  if (flags.json) printJson(verbatim({ secret, oldUntil }))
  else
    printData(
      flags.quiet ? secret : `${secret}\n\nIt is not shown again. Deliveries have both signatures until ${oldUntil}.`,
    )
}

const timeOf = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())

const shownDelivery = ({ createdAtMs, nextAtMs, lastAtMs, ...rest }: Delivery) => ({
  ...rest,
  createdAt: timeOf(createdAtMs),
  nextAt: timeOf(nextAtMs),
  lastAt: timeOf(lastAtMs),
})

const remove: Work = async ({ subscriptions }, flags, word) => {
  await subscriptions.remove(word)
  if (flags.json) printJson({ removed: word })
  else if (!flags.quiet) print(`${word} is gone`)
}
