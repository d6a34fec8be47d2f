/** Where the command line begins. The version is printed without loading the rest of it. */
import { VERSION } from '../config/user-agent.ts'
import { print } from './output.ts'

if (['--version', '-V'].includes(process.argv[2] ?? '')) print(VERSION)
else await import('./program.ts')
