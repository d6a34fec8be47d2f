/** The client library of PostgreSQL, which only projects that use PostgreSQL install. */
import { optionalPackage } from '../../core/optional-package.ts'

export const { default: pg } = await optionalPackage('PostgreSQL needs', 'pg', () => import('pg'))
