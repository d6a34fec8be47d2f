/** Makes a page show the profile its identity's requests show: user agent, client hints, languages, time zone, window. */
import type { CDPSession } from 'puppeteer-core'
import { ScrapeError } from '../../core/errors.ts'
import type { Profile } from '../profiles.ts'

/** Fits the language; a proxy elsewhere does not change it, as its country is not known to us. */
const TIME_ZONE = 'America/New_York'

export async function showProfile(session: CDPSession, profile: Profile): Promise<void> {
  const { userAgent, hints, languages, platform, viewport, name } = profile
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
