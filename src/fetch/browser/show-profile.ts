/** Makes a page show the same profile as its identity's requests: user agent, client hints, languages, time zone, window. */
import type { CDPSession } from 'puppeteer-core'
import { ScrapeError } from '../../core/errors.ts'
import { PROFILES, type Profile, type ProfileName } from '../identity/profiles.ts'

/** Matches the language; a proxy elsewhere does not change it, as we do not know its country. */
const TIME_ZONE = 'America/New_York'

export async function showProfile(session: CDPSession, profile: Profile): Promise<void> {
  // Our own browser's handshake is never that of the older browser the TLS library imitates, so the page does not show that one.
  const shown = profile.tls === undefined ? profile : PROFILES[profile.name as ProfileName]
  const { userAgent, hints, languages, platform, viewport, name } = shown
  if (hints === undefined) throw new ScrapeError('E_BROWSER_LAUNCH', `a Chromium cannot pass for ${name}`)
  await Promise.all([
    session.send('Emulation.setUserAgentOverride', {
      userAgent,
      acceptLanguage: languages.join(','),
      platform,
      userAgentMetadata: hints,
    }),
    session.send('Emulation.setLocaleOverride', { locale: languages[0]!.replace('-', '_') }),
    session.send('Emulation.setTimezoneOverride', { timezoneId: TIME_ZONE }),
    session.send('Emulation.setDeviceMetricsOverride', { ...viewport, deviceScaleFactor: 1, mobile: false }),
  ])
}
