/** The users' sessions on sites, stored with the run: whichever worker fetches a user's next page is logged in as that user. */
import type { SessionState } from '../../core/session-state.ts'
import type { Sessions } from '../../crawl/contract.ts'
import { sessionHeaders } from '../../fetch/identity/session-cookies.ts'
import type { Frontier } from '../../frontier/contract.ts'

export function openSessions(frontier: Pick<Frontier, 'getMeta' | 'setMeta'>): Sessions {
  const note = (name: string) => `session:${name}`
  return {
    async get(name) {
      const kept = await frontier.getMeta(note(name))
      return kept === undefined ? undefined : (JSON.parse(kept) as SessionState)
    },
    keep: (name, state) => frontier.setMeta(note(name), JSON.stringify(state)),
    headers: (state, url) => sessionHeaders(state, url),
  }
}
