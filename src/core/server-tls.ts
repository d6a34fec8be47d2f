/**
 * TLS to our own servers (database, Redis, broker), as configured in their URLs: certificates are verified unless the URL says
 * otherwise.
 */
import { readFileSync } from 'node:fs'
import type { ConnectionOptions } from 'node:tls'
import { ScrapeError } from './errors.ts'

/** URL options that say how to connect, not where: they name local files and do not identify the server. */
export const TLS_PARAMETERS = [
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'cacert',
  'cert',
  'key',
  'servername',
  'verify',
] as const

export type TlsOptions = Pick<
  ConnectionOptions,
  'ca' | 'cert' | 'key' | 'servername' | 'rejectUnauthorized' | 'checkServerIdentity'
>

interface TlsNames {
  ca: string
  cert: string
  key: string
}

const NAMES: TlsNames = { ca: 'cacert', cert: 'cert', key: 'key' }

/**
 * Reads `?cacert=FILE&cert=FILE&key=FILE&servername=NAME&verify=none` and removes these options from the URL. Undefined: the URL
 * does not ask for TLS. Throws `E_OPTION` for contradictory options, and for a file that cannot be read.
 */
export function takeTls(url: URL, isTls: boolean): TlsOptions | undefined {
  const given = TLS_PARAMETERS.filter((name) => !name.startsWith('ssl') && url.searchParams.has(name))
  if (!isTls && given.length > 0)
    throw new ScrapeError(
      'E_OPTION',
      `${given.join(', ')} in a URL of ${url.protocol}// has no meaning: nothing is encrypted`,
      {
        fix: `Write ${url.protocol.replace(':', 's')}//, or take the option away.`,
      },
    )
  if (!isTls) return undefined
  const verify = url.searchParams.get('verify')
  if (verify !== null && verify !== 'none')
    throw new ScrapeError('E_OPTION', `verify=${verify} is not known`, {
      fix: 'Certificates are verified without it; only verify=none turns that off.',
    })
  const servername = url.searchParams.get('servername')
  const tls: TlsOptions = {
    ...readTlsFiles(url, NAMES),
    ...(servername === null ? {} : { servername }),
    ...(verify === 'none' ? { rejectUnauthorized: false } : {}),
  }
  for (const name of given) url.searchParams.delete(name)
  if (verify === 'none') warnUnverified(url, 'verify=none')
  return tls
}

/** Reads the certificates that a URL names. A certificate without its key, or a key without its certificate, is a mistake. */
export function readTlsFiles(url: URL, names: TlsNames): TlsOptions {
  const [ca, cert, key] = [names.ca, names.cert, names.key].map((name) => url.searchParams.get(name) ?? undefined)
  if ((cert === undefined) !== (key === undefined))
    throw new ScrapeError('E_OPTION', `${names.cert} and ${names.key} in the URL of ${url.host} go together`, {
      fix: 'Name the client’s certificate and its private key, or neither.',
    })
  return {
    ...(ca === undefined ? {} : { ca: readPem(ca, names.ca, url) }),
    ...(cert === undefined ? {} : { cert: readPem(cert, names.cert, url), key: readPem(key!, names.key, url) }),
  }
}

function readPem(path: string, name: string, { host }: URL): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ScrapeError('E_OPTION', `${name} in the URL of ${host} cannot be read: ${(cause as Error).message}`, {
      cause,
      fix: 'Name a file in PEM form that the user of this process may read.',
    })
  }
  if (text.includes('-----BEGIN ')) return text
  throw new ScrapeError('E_OPTION', `${name} in the URL of ${host}: ${path} is not in PEM form`, {
    fix: 'It begins with -----BEGIN; convert others with: openssl x509 -inform der -in FILE -out FILE.pem',
  })
}

/**
 * Remaining URL parameters are interpreted by the client library and override our options there: `tls`, `ssl` or `db` would undo
 * what was checked here. `hint` says what to write instead.
 */
export function refuseOtherParameters({ searchParams, host }: URL, known: readonly string[], hint: string): void {
  const others = [...new Set(searchParams.keys())].filter((name) => !known.includes(name))
  if (others.length === 0) return
  throw new ScrapeError('E_OPTION', `${others.join(', ')} in the URL of ${host} is not known`, { fix: hint })
}

const warned = new Set<string>()

/** Warns once per server and process. */
export function warnUnverified({ host }: URL, why: string): void {
  if (warned.has(host)) return
  warned.add(host)
  process.emitWarning(
    `the certificate of ${host} is not verified (${why}): whoever is in between can read and change everything`,
    {
      type: 'SecurityWarning',
      code: 'SLUICE_TLS_UNVERIFIED',
    },
  )
}

const UNKNOWN_AUTHORITY =
  /^(?:UNABLE_TO_VERIFY_LEAF_SIGNATURE|UNABLE_TO_GET_ISSUER_CERT(?:_LOCALLY)?|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED|INVALID_CA)$/
const NO_TLS = /WRONG_VERSION_NUMBER|wrong version number|PACKET_LENGTH_TOO_LONG|packet length too long/
const CLIENT_REFUSED =
  /ALERT_CERTIFICATE_REQUIRED|CERTIFICATE_REQUIRED|ALERT_UNKNOWN_CA|BAD_CERTIFICATE|HANDSHAKE_FAILURE|certificate required|unknown ca|bad certificate|handshake failure/i

/**
 * TLS errors persist until they are fixed. Undefined: not a TLS error. `caOption` is the URL's option for the authority's file.
 */
export function tlsTrouble(error: unknown, place: string, caOption: string): ScrapeError | undefined {
  const { code = '', message = '', reason = '' } = error as { code?: unknown; message?: string; reason?: string }
  const name = String(code)
  const trouble = (why: string, fix: string) =>
    new ScrapeError('E_SERVICE', `${place}: ${why} (${name || message})`, { cause: error, fix })
  if (UNKNOWN_AUTHORITY.test(name))
    return trouble('its certificate is not signed by an authority known here', `Name the authority’s certificate with ${caOption}=FILE in the URL; if it is the right one already, somebody else answers there.`) // biome-ignore format: one line reads better
  if (name === 'CERT_HAS_EXPIRED') return trouble('its certificate has expired', 'Renew the certificate of the server, and check the clocks.') // biome-ignore format: one line reads better
  if (name === 'CERT_NOT_YET_VALID') return trouble('its certificate is not valid yet', 'Check the clocks of both machines.') // biome-ignore format: one line reads better
  if (name === 'CERT_REVOKED') return trouble('its certificate was revoked', 'Give the server a new certificate.')
  if (name === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return trouble(`its certificate is for another name: ${reason || message}`, 'Use a name that is in the certificate, or make one with this name in subjectAltName.') // biome-ignore format: one line reads better
  if (NO_TLS.test(`${name} ${message}`) || message === 'The server does not support SSL connections')
    return trouble('it does not speak TLS at this port', 'Name its TLS port, or switch TLS on there.')
  if (CLIENT_REFUSED.test(`${name} ${message}`))
    return trouble('it refuses the certificate we showed, or wants one and got none', 'Name a client certificate and its key in the URL, signed by the authority the server trusts.') // biome-ignore format: one line reads better
  if (/^ERR_(?:OSSL|SSL|TLS)_/.test(name))
    return trouble(message, 'Check the certificates and the versions of TLS of both sides.')
  return undefined
}
