/** What a caller of the API may do. read: look · operate: start, steer, retry · admin: keys and all else. */
export const ROLES = ['read', 'operate', 'admin'] as const
export type Role = (typeof ROLES)[number]

/** Each may do what those before it may. */
export const mayDo = (role: Role, wanted: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(wanted)
