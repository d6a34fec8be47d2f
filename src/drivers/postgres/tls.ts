/**
 * `sslmode` and its files in a PostgreSQL URL, with the meaning they have for `psql`.
 *
 *   disable      plain text
 *   prefer       TLS if the server supports it, not verified
 *   require      TLS, not verified; with sslrootcert like verify-ca
 *   verify-ca    TLS, signed by sslrootcert
 *   verify-full  TLS, signed by sslrootcert (or by an authority Node knows), for this host name
 *
 * The driver interprets them differently: it treats prefer, require and verify-ca as verify-full, warns that this will change,
 * and never falls back. So these options are removed from the URL before the driver sees it, others about TLS are rejected, and
 * the driver is always told what to do: PGSSLMODE and the like have no effect.
 */
import type { Pool } from 'pg'
import { ScrapeError } from '../../core/errors.ts'
import { readTlsFiles, refuseOtherParameters, type TlsOptions, warnUnverified } from '../../core/server-tls.ts'

export interface PostgresTls {
  /** Without the options that were read. */
  connectionString: string
  /** False: plain text. */
  ssl: TlsOptions | false
  /** If the server does not support TLS, plain text is used. */
  isOptional: boolean
}

const MODES = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const
type Mode = (typeof MODES)[number]
const NAMES = { ca: 'sslrootcert', cert: 'sslcert', key: 'sslkey' }

const HINT =
  'Write sslmode=verify-full&sslrootcert=FILE for TLS (sslcert=FILE&sslkey=FILE for a client certificate), or sslmode=disable for none.'

/** Throws `E_OPTION` for an unknown mode, for any other option about TLS, and for a file that cannot be read. */
export function postgresTls(text: string): PostgresTls {
  const url = URL.parse(text)
  const names = ['sslmode', NAMES.ca, NAMES.cert, NAMES.key, 'verify']
  if (url === null) throw noUrl()
  const others = [...url.searchParams.keys()].filter((name) => !/^(?:ssl|uselibpqcompat)/i.test(name))
  refuseOtherParameters(url, [...names, ...others], HINT)
  if (!names.some((name) => url.searchParams.has(name)))
    return { connectionString: text, ssl: false, isOptional: false }
  const mode = modeOf(url)
  if (url.searchParams.get(NAMES.ca) === 'system') url.searchParams.delete(NAMES.ca) // the ones Node knows
  const ssl = mode === 'disable' ? false : tlsFor(mode, readTlsFiles(url, NAMES), url)
  for (const name of names) url.searchParams.delete(name)
  return { connectionString: url.href, ssl, isOptional: mode === 'prefer' }
}

export const noUrl = () =>
  new ScrapeError('E_OPTION', 'this is not the URL of a PostgreSQL database', {
    fix: 'For example postgres://user:password@localhost:5432/sluice; in a password / is %2F, # is %23, @ is %40 and ? is %3F.',
  })

function modeOf({ searchParams, host }: URL): Mode {
  const verify = searchParams.get('verify')
  if (verify !== null && verify !== 'none') throw new ScrapeError('E_OPTION', `verify=${verify} in the URL of ${host} is not known`, { fix: 'Use sslmode=verify-full, or sslmode=require for TLS that verifies nothing.' }) // biome-ignore format: one line reads better
  const given = searchParams.get('sslmode') ?? (verify === 'none' ? 'require' : 'verify-full')
  if ((MODES as readonly string[]).includes(given)) return given as Mode
  throw new ScrapeError('E_OPTION', `sslmode=${given} in the URL of ${host} is not known`, {
    fix: `Use one of ${MODES.join(', ')}.`,
  })
}

function tlsFor(mode: Exclude<Mode, 'disable'>, files: TlsOptions, url: URL): TlsOptions {
  const isUnverified = url.searchParams.get('verify') === 'none'
  if (isUnverified || mode === 'prefer' || (mode === 'require' && files.ca === undefined)) {
    warnUnverified(url, isUnverified ? 'verify=none' : `sslmode=${mode}`)
    return { ...files, rejectUnauthorized: false }
  }
  if (mode === 'verify-full') return files
  if (files.ca === undefined)
    throw new ScrapeError('E_OPTION', `sslmode=${mode} in the URL of ${url.host} needs sslrootcert`, {
      fix: 'Name your authority with sslrootcert=FILE. A public one signs for everybody: with those use verify-full.',
    })
  return { ...files, checkServerIdentity: () => undefined }
}

/** With `prefer`, if the server does not support TLS: continues without it. False if that was not the problem. */
export function goPlain(pool: Pool, { isOptional }: PostgresTls, error: unknown): boolean {
  const isMeant =
    isOptional && error instanceof Error && error.message === 'The server does not support SSL connections'
  if (!isMeant || pool.options.ssl === false) return false
  pool.options.ssl = false
  return true
}
