/** The `tor` program for tests. `openTor` starts and owns the daemon itself; this only finds the program. */
import { findProgram, type Program, type Service } from './find-program.ts'

export const TOR: Service = { name: 'Tor', program: 'usr/sbin/tor', package: 'tor' }

export const torForTests = (): Promise<Program> => findProgram(TOR)
