/** Options of every run in this folder. Flags and SLUICE_* win over them; `sluice config --explain` tells about all. */
export default {
  // Put into the user agent, so that site owners write to you before they block you.
  // contact: 'you@example.org',
  out: 'runs',
}
