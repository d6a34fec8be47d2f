/** Options of every run in this folder. Flags and SLUICE_* win over them; `sluice config --explain` tells about all. */
export default {
  // Put into the user agent, so that site owners write to you before they block you.
  // contact: 'you@example.org',
  // The queue that start and workers share. With a password in it: SLUICE_FRONTIER in the environment, or SLUICE_FRONTIER_FILE.
  // frontier: 'postgres://sluice@127.0.0.1:5432/sluice',
  out: 'runs',
}
