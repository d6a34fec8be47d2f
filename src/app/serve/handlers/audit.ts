/** Who did what through this API. */

import { Audit } from '../../../server/access/audit.ts'
import type { auditEndpoints } from '../../../server/api/routes/audit.ts'
import type { HandlersOf } from '../../../server/api/server.ts'
import type { Server } from '../server/server.ts'

export function auditHandlers({ db }: Pick<Server, 'db'>): HandlersOf<typeof auditEndpoints> {
  const audit = new Audit(db)
  return {
    async listAudit({ query: { limit, cursor } }) {
      const before = cursor === undefined ? undefined : Number(cursor)
      const found = await audit.list({ limit: limit + 1, before })
      const data = found.slice(0, limit).map(({ id, atMs, ...entry }) => ({
        ...entry,
        id: String(id),
        at: new Date(atMs).toISOString(),
      }))
      return { data, next: found.length > limit ? data.at(-1)!.id : null }
    },
  }
}
