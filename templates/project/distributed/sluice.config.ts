/** Options of every run in this folder. Flags and SLUICE_* variables override them; `sluice config --explain` lists all. */
export default {
  // Included in the user agent, so that site owners write to you before they block you.
  // contact: 'you@example.org',
  // The queue that start and workers share. If it has a password, set SLUICE_FRONTIER or SLUICE_FRONTIER_FILE instead.
  // frontier: 'postgres://sluice@127.0.0.1:5432/sluice',
  out: 'runs',
}
