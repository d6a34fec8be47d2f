/**
 * The browser profiles a TLS library can imitate: ours, at the newest version for which it has a handshake. Headers of one
 * version with the handshake of another would match no real browser.
 */
import { ScrapeError } from '../../core/errors.ts'
import { installCommand } from '../../core/optional-package.ts'
import { type Profile, profilesAt, VERSIONS } from '../identity/profiles.ts'

/** `names` as the library spells them: `chrome_149`, `safari_26.1`. Throws `E_OPTION` if it has none for one of our browsers. */
export function tlsProfiles(names: readonly string[]): Profile[] {
  const versions = {
    chrome: Number(newestOf('chrome', names)),
    edge: Number(newestOf('edge', names)),
    firefox: Number(newestOf('firefox', names)),
    safari: newestOf('safari', names),
  }
  return Object.values(profilesAt(versions)).map((profile) => {
    const [browser, os] = profile.name.split('-') as [keyof typeof versions, string]
    return { ...profile, tls: { browser: `${browser}_${versions[browser]}`, os } }
  })
}

/** Not newer than the versions whose headers we know. */
function newestOf(browser: keyof typeof VERSIONS, names: readonly string[]): string {
  const known = String(VERSIONS[browser])
  const found = names
    .filter((name) => name.startsWith(`${browser}_`))
    .map((name) => name.slice(browser.length + 1))
    .filter((version) => /^\d+(?:\.\d+)*$/.test(version) && compare(version, known) <= 0)
    .sort(compare)
    .at(-1)
  if (found !== undefined) return found
  throw new ScrapeError('E_OPTION', `the TLS library has no ${browser} up to ${known}`, {
    fix: installCommand(['wreq-js']),
  })
}

function compare(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true })
}
