/** Certificates for tests: an authority, and what it signs, created with openssl in a temporary folder. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Paths of PEM files. */
export interface Certificate {
  cert: string
  key: string
}

export interface Authority extends Disposable {
  /** Its own certificate. */
  ca: string
  /** For `127.0.0.1` and `localhost`, or the given names. Valid for a day unless expired. */
  sign(name: string, options?: { alternatives?: string; isExpired?: boolean }): Certificate
}

const SELF = 'IP:127.0.0.1,DNS:localhost'

export function createAuthority(name = 'Sluice test authority'): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-certificates-'))
  const file = (path: string) => join(folder, path)
  const openssl = (...args: string[]) =>
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl('req', '-x509', ...newKey, '-days', '1', '-subj', `/CN=${name}`, '-keyout', 'ca.key', '-out', 'ca.pem')
  writeFileSync(file('index.txt'), '')
  writeFileSync(file('ca.conf'), authorityConfig(folder))
  return {
    ca: file('ca.pem'),
    sign(subject, { alternatives = SELF, isExpired = false } = {}) {
      const base = subject.replace(/\W/g, '-')
      openssl('req', ...newKey, '-subj', `/CN=${subject}`, '-keyout', `${base}.key`, '-out', `${base}.csr`)
      writeFileSync(file(`${base}.ext`), `subjectAltName=${alternatives}\n`)
      const span = isExpired ? ['-startdate', '20200101000000Z', '-enddate', '20200102000000Z'] : ['-days', '1']
      openssl('ca', '-batch', '-notext', '-config', 'ca.conf', ...span, '-in', `${base}.csr`, '-out', `${base}.pem`, '-extfile', `${base}.ext`) // biome-ignore format: one line reads better
      return { cert: file(`${base}.pem`), key: file(`${base}.key`) }
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

const authorityConfig = (folder: string) => `[ca]
default_ca = own
[own]
new_certs_dir = ${folder}
database = ${folder}/index.txt
certificate = ${folder}/ca.pem
private_key = ${folder}/ca.key
default_md = sha256
rand_serial = yes
unique_subject = no
policy = any
[any]
commonName = supplied
`

/** The TLS configuration of a test server. */
export interface ServerTls extends Certificate {
  ca: string
  /** Clients must present a certificate from the authority. */
  wantsClient?: boolean
}
