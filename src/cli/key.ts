/** `sluice key`: manages API keys and their roles. */
import type { Command } from 'commander'
import { verbatim } from '../core/redact.ts'
import { ROLES, type Role } from '../core/role.ts'
import { addReadFlags, print, printData, printJson, type ReadFlags } from './output.ts'
import { addPlaces, type PlaceFlags, placesOf } from './run-place.ts'

interface KeyFlags extends ReadFlags, PlaceFlags {
  role?: string
  expires?: string
  grace?: string
}

const HELP = `
A key is shown once, when it is created; only its hash is stored. Roles: read · operate (also start, pause, cancel, retry) · admin (everything).

Examples:
  sluice key create grafana --role read --expires 90d
  sluice key list
  sluice key rotate 3f2a9c01be77 --grace 24h
  sluice key revoke 3f2a9c01be77`

const FIRST = `
This is the first key: from now on every request to a server on this store needs a key, also on the server’s own machine
(unless it was started with --no-key-on-loopback).`

export function defineKey(program: Command): void {
  const key = program.command('key').description('create, list, rotate and revoke API keys').addHelpText('after', HELP)
  const create = key
    .command('create <name>')
    .description('create a key and print it (only once)')
    .option('--role <role>', ROLES.join(', '), 'read')
    .option('--expires <duration>', 'expire after this time, e.g. 90d; default: never')
    .action(async (name: string, flags: KeyFlags) => {
      process.exitCode = await createKey(name, flags)
    })
  const list = key
    .command('list')
    .description('list the keys')
    .action(async (flags: KeyFlags) => {
      process.exitCode = await listKeys(flags)
    })
  const rotate = key
    .command('rotate <id>')
    .description('create a new key with the same name and role; the old key stays valid for a while')
    .option('--grace <duration>', 'how long the old key stays valid', '24h')
    .option('--expires <duration>', 'expire the new key after this time, or never; default: same as the old key')
    .action(async (id: string, flags: KeyFlags) => {
      process.exitCode = await rotateKey(id, flags)
    })
  const revoke = key
    .command('revoke <id>')
    .description('revoke a key at once')
    .action(async (id: string, flags: KeyFlags) => {
      process.exitCode = await revokeKey(id, flags)
    })
  for (const command of [create, list, rotate, revoke]) {
    addReadFlags(command, 'the result')
    addPlaces(command)
  }
}

async function withKeys<T>(
  flags: KeyFlags,
  work: (keys: import('../server/access/keys.ts').ApiKeys) => Promise<T>,
): Promise<T> {
  const [{ openServeDatabase }, { ApiKeys }] = await Promise.all([
    import('../app/serve/server/database.ts'),
    import('../server/access/keys.ts'),
  ])
  const { places } = await placesOf(flags)
  const { store, db } = await openServeDatabase(places)
  await using _ = store
  return await work(new ApiKeys(db))
}

async function createKey(name: string, flags: KeyFlags): Promise<number> {
  const { ScrapeError } = await import('../core/errors.ts')
  if (!(ROLES as readonly string[]).includes(flags.role ?? ''))
    throw new ScrapeError('E_USAGE', `--role takes ${ROLES.join(', ')}, got ${JSON.stringify(flags.role)}`)
  const { lifeMsOf } = await import('./grace.ts')
  const lifeMs = lifeMsOf(flags.expires)
  const { key, id, isFirst } = await withKeys(flags, async (keys) => ({
    isFirst: !(await keys.haveExisted()),
    ...(await keys.create(name, flags.role as Role, { lifeMs })),
  }))
  const text = `${key}\n\nkey ${id} (${flags.role}). It is not shown again.${isFirst ? FIRST : ''}`
  if (flags.json) printJson(verbatim({ id, name, role: flags.role, key }))
  else printData(flags.quiet ? key : text)
  return 0
}

async function rotateKey(id: string, flags: KeyFlags): Promise<number> {
  const [{ graceMsOf, lifeMsOf }, { ScrapeError }] = await Promise.all([
    import('./grace.ts'),
    import('../core/errors.ts'),
  ])
  const times = {
    graceMs: graceMsOf(flags.grace!),
    lifeMs: flags.expires === 'never' ? Number.POSITIVE_INFINITY : lifeMsOf(flags.expires),
  }
  const made = await withKeys(flags, (keys) => keys.rotate(id, times))
  if (made === undefined)
    throw new ScrapeError('E_USAGE', `no key ${JSON.stringify(id)} that could be replaced`, {
      fix: 'See `sluice key list`: one that is over, or has a successor, is not replaced again.',
    })
  const { oldUntilMs, ...shown } = made
  const oldUntil = new Date(oldUntilMs).toISOString()
  if (flags.json) printJson(verbatim({ ...shown, replaces: id, oldUntil }))
  else
    printData(
      flags.quiet
        ? made.key
        : `${made.key}\n\nkey ${made.id} (${made.role}) replaces ${id}, which is valid until ${oldUntil}. It is not shown again.`,
    )
  return 0
}

async function listKeys(flags: KeyFlags): Promise<number> {
  const keys = await withKeys(flags, (all) => all.list())
  const time = (ms: number | undefined) => (ms === undefined ? null : new Date(ms).toISOString())
  if (flags.json) {
    const shown = keys.map(({ createdAtMs, usedAtMs, expiresAtMs, successorId, ...key }) => ({
      ...key,
      expiresAt: time(expiresAtMs),
      successorId: successorId ?? null,
      createdAt: time(createdAtMs),
      usedAt: time(usedAtMs),
    }))
    printJson({ keys: shown })
    return 0
  }
  const { printable, table } = await import('./style.ts')
  const rows = keys.map(({ id, name, role, usedAtMs, expiresAtMs, isRevoked }) => {
    const end =
      expiresAtMs === undefined ? 'never' : `${time(expiresAtMs)}${expiresAtMs <= Date.now() ? ' (over)' : ''}`
    return [id, printable(name), role, time(usedAtMs) ?? 'not used yet', isRevoked ? 'revoked' : end]
  })
  print(
    rows.length === 0
      ? 'no keys; create one: sluice key create NAME --role read'
      : table([['id', 'name', 'role', 'last used', 'expires'], ...rows]),
  )
  return 0
}

async function revokeKey(id: string, flags: KeyFlags): Promise<number> {
  const { ScrapeError } = await import('../core/errors.ts')
  if (!(await withKeys(flags, (keys) => keys.revoke(id))))
    throw new ScrapeError('E_USAGE', `no key ${JSON.stringify(id)} that could be revoked`, {
      fix: 'See `sluice key list`.',
    })
  if (flags.json) printJson({ id, isRevoked: true })
  else if (!flags.quiet) print(`key ${id} is refused from now on (by servers that run: within 5 s)`)
  return 0
}
