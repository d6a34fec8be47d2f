/** Who users are to the sites, kept as notes of the run: whatever worker has the next page of a user, it is signed in. */
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
