/** Employment types, as boards in a dozen languages write them. */
import type { EmploymentType } from './posting.ts'

/** Words for each type, in lower case, without spaces, `_` and `-`. */
const WORDS: Readonly<Record<EmploymentType, string>> = {
  internship: `
  internship intern interns trainee stage stagiaire praktikum praktikant praktikantin alternance alternant
  apprentissage apprenti apprenticeship apprentice ausbildung azubi stageplek stagiair tirocinio stagista becario
  becaria practicas prácticas beca estágio estagio estagiário estagiario praktik praktikplats staż staz praktyka
  praktyki praktykant stáž staz 实习 實習 实习生 インターン インターンシップ coop workstudy
`,
  temporary: `
  temporary temp temporal seasonal fixedterm fixedtermcontract limited befristet saisonal saison zeitarbeit cdd
  intérim interim intérimaire intérimaires temporaire saisonnier temporaneo tempodeterminato determinato
  stagionale temporário temporario tijdelijk tijdelijkcontract uitzend tidsbegränsad visstid vikariat säsong
  czasokreślony czasowa dočasný dobaurčitá 临时 臨時 派遣 派遣社員 契約社員 アルバイト派遣 holidaywork fixedtermtemporary
`,
  contract: `
  contract contractor contracttohire freelance freelancer independentcontractor c2c corptocorp w2contract 1099
  subcontractor consultant freiberuflich freiberufler selbstständig selbständig indépendant independant
  independiente autónomo autonomo liberoprofessionista libreprofessionnel partitaiva prestador pj zzp zelfstandig
  konsult konsultuppdrag b2b kontrakt umowazlecenie zlecenie živnost živnostník 合同 合同工 外包 自由职业 業務委託 フリーランス
  contractcorptocorp contractw2
`,
  volunteer: `
  volunteer voluntary volunteering ehrenamt ehrenamtlich bénévole bénévolat bénévolat volontaire volontario
  volontariato voluntario voluntariado voluntário vrijwilliger vrijwilligerswerk volontär ideell wolontariat
  wolontariusz dobrovolník 志愿者 志願 ボランティア
`,
  per_diem: 'perdiem prn casual oncall pool zerohours zerohour journalier vacataire giornaliero',
  full_or_part: `
  fullorparttime fullorpart fulltimeorparttime fullparttime parttimeorfulltime vollzeitoderteilzeit vollteilzeit
  voltijdsofdeeltijds
`,
  part_time: `
  parttime part pt halftime teilzeit minijob geringfügig werkstudent werkstudentin workingstudent studentische
  studentjob tempspartiel partiel mitemps parziale tempoparziale mediajornada tiempoparcial jornadaparcial
  parcial meiotempo meioperíodo tempoparcial deeltijd deeltijds parttimejob deltid deltidsjobb halvtid
  niepełnyetat częśćetatu półetatu zkrácenýúvazek částečnýúvazek 兼职 兼職 アルバイト パート パートタイム バイト hourlypt salariedpt
`,
  full_time: `
  fulltime full ft permanent regular regularfulltime employee salaried salariedft hourlyft vollzeit
  festanstellung unbefristet tempsplein cdi pleintemps indefinido tiempocompleto jornadacompleta completa
  tempoindeterminato indeterminato tempopieno efetivo clt tempointegral integral períodointegral voltijd voltijds
  fulltimejob vast vastedienst onbepaaldetijd heltid heltidsjobb tillsvidare tillsvidareanställning fast
  fastanställning pełnyetat pełenetat umowaopracę stałapraca plnýúvazek hpp hlavnípracovnípoměr 正社員 全职 全職 正式 正规
  フルタイム 常勤 permanentfulltime standard
`,
  other: 'other andere sonstige autre otro altro outro anders annat inne jiné 其他 その他',
}

/** The order in which types are tried when a word is searched for inside a longer one. */
const ORDER = Object.keys(WORDS) as EmploymentType[]

const EXACT = new Map<string, EmploymentType>()
for (const type of ORDER)
  for (const word of WORDS[type].trim().split(/\s+/)) if (!EXACT.has(word)) EXACT.set(word, type)

/** Shorter words occur in too many others ("stage" in "early-stage"), as does "temporary" in "contemporary". */
const INSIDE_CHARS_MIN = 6
const INSIDE = [...EXACT].filter(
  ([word, type]) =>
    type !== 'other' && word !== 'temporary' && (word.length >= INSIDE_CHARS_MIN || /[^\p{Script=Latin}]/u.test(word)),
)

/** Of several types, the most specific wins: an internship may also be full-time. */
const STRENGTH: readonly EmploymentType[] = [
  'internship',
  'temporary',
  'contract',
  'volunteer',
  'per_diem',
  'full_or_part',
]

const FIELD_CHARS_MAX = 200

const squeeze = (text: string) =>
  text
    .normalize('NFC')
    .toLowerCase()
    .replace(/[\s_.'’()-]+/g, '')

/** The type that a structured field names; null if unknown. Never pass it a description. */
export function parseEmploymentType(value: string | readonly string[] | null | undefined): EmploymentType | null {
  const fields = (Array.isArray(value) ? value : [value]).filter((field) => typeof field === 'string')
  const found = new Set<EmploymentType>()
  for (const field of fields.slice(0, 20)) for (const type of typesIn(field.slice(0, FIELD_CHARS_MAX))) found.add(type)
  for (const type of STRENGTH) if (found.has(type)) return type
  if (found.has('full_time') && found.has('part_time')) return 'full_or_part'
  return found.has('full_time')
    ? 'full_time'
    : found.has('part_time')
      ? 'part_time'
      : found.has('other')
        ? 'other'
        : null
}

function typesIn(field: string): EmploymentType[] {
  const whole = EXACT.get(squeeze(field))
  if (whole !== undefined) return [whole]
  const parts = field.split(/[,;|/+&、，]|\s-\s|\bor\b|\band\b|\boder\b|\bund\b|\bou\b/iu)
  return parts.flatMap((part) => typesInPart(squeeze(part), part))
}

function typesInPart(word: string, part: string): EmploymentType[] {
  const exact = EXACT.get(word)
  if (exact !== undefined) return [exact]
  const byWord = part.split(/[\s_-]+/).flatMap((each) => EXACT.get(squeeze(each)) ?? [])
  // "fulltime_fixed_term" contains both; the stronger one wins later.
  const inside = INSIDE.filter(([known]) => word.includes(known)).map(([, type]) => type)
  const isPartTime = [...byWord, ...inside].includes('part_time')
  // "Permanent part-time": the first word says for how long, not how many hours.
  return [...byWord, ...inside].filter(
    (type) => !(isPartTime && type === 'full_time' && /perman|unbefristet|regular|employee|cdi|fest/.test(word)),
  )
}
