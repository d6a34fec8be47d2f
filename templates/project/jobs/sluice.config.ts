/** Options of every run in this folder. Flags and SLUICE_* variables override them; `sluice config --explain` lists all. */
export default {
  // Included in the user agent, so that site owners write to you before they block you.
  // contact: 'you@example.org',
  out: 'runs',
}
