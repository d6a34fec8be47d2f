/** Makes a page show the profile its identity's requests show: user agent, client hints, languages, time zone, window. */
import type { CDPSession } from 'puppeteer-core'
import { ScrapeError } from '../../core/errors.ts'
import { PROFILES, type Profile, type ProfileName } from '../identity/profiles.ts'

/** Fits the language; a proxy elsewhere does not change it, as its country is not known to us. */
const TIME_ZONE = 'America/New_York'

export async function showProfile(session: CDPSession, profile: Profile): Promise<void> {
  // A handshake of our own browser is never that of the TLS library's older one: so neither is what the page shows.
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
