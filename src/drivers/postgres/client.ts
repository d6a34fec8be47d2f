/** The PostgreSQL client library, installed only by projects that use PostgreSQL. */
import { optionalPackage } from '../../core/optional-package.ts'

export const { default: pg } = await optionalPackage('PostgreSQL needs', 'pg', () => import('pg'))
