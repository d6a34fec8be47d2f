/** What an API caller may do. read: only read · operate: start, control, retry · admin: keys and everything else. */
export const ROLES = ['read', 'operate', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** Each role includes those before it. */
export const mayDo = (role: Role, wanted: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(wanted)
