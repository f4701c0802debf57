const second = 1000
/**
 * The value that RFC 9111, 1.2.2 permits for any number of seconds that is too large: 68 years, in
 * ms.
 */
const maxDelayMs = 2 ** 31 * second

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

/**
 * The forms of RFC 9110, 5.6.7: IMF-fixdate, and the two obsolete ones that recipients must accept.
 */
const dateForms = [
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?<day>\d\d) (?<month>[A-Z][a-z]{2}) (?<year>\d{4}) (?<time>\d\d:\d\d:\d\d) GMT$/,
  /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\d\d)-(?<month>[A-Z][a-z]{2})-(?<year>\d\d) (?<time>\d\d:\d\d:\d\d) GMT$/,
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?<month>[A-Z][a-z]{2}) (?<day>[ \d]\d) (?<time>\d\d:\d\d:\d\d) (?<year>\d{4})$/
]

/** A two-digit year is at most 50 years in the future (RFC 9110, 5.6.7). */
const fullYear = (text: string, now: number): number => {
  if (text.length === 4) return Number(text)
  const thisYear = new Date(now).getUTCFullYear()
  const year = thisYear - (thisYear % 100) + Number(text)
  return year > thisYear + 50 ? year - 100 : year
}

const parseDate = (text: string, now: number): number | undefined => {
  for (const form of dateForms) {
    const { day, month, year, time } = form.exec(text)?.groups ?? {}
    if (day === undefined || month === undefined || year === undefined || time === undefined)
      continue
    const [hours = 0, minutes = 0, seconds = 0] = time.split(":").map(Number)
    const at = Date.UTC(
      fullYear(year, now),
      months.indexOf(month),
      Number(day),
      hours,
      minutes,
      seconds
    )
    const exists =
      months.includes(month) &&
      new Date(at).getUTCDate() === Number(day) &&
      hours < 24 &&
      minutes < 60 &&
      seconds < 60
    return exists ? at : undefined
  }
  return undefined
}

/**
 * Returns the requested delay in ms from now (an integer, at most 2^31 s). Returns undefined if the
 * header is missing, is neither a number of seconds nor a date, or is a date in the past.
 *
 * @param now ms since the epoch.
 */
export const parseRetryAfter = (header: string | undefined, now: number): number | undefined => {
  const text = header?.trim() ?? ""
  if (/^\d+$/.test(text)) return Math.min(Number(text) * second, maxDelayMs)
  const at = parseDate(text, now)
  return at === undefined || at < now ? undefined : Math.min(Math.ceil(at - now), maxDelayMs)
}
