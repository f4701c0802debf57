import type { AttemptResult } from "../../domain/outcome.ts"

/** Replaces a secret in an answer. */
const mark = "[redacted]"

/** A shorter value is not treated as a secret: redacting it would leave little of an answer. */
const minSecretLength = 4
/**
 * A prefix of a secret with this many characters is treated as the secret, anywhere in the text.
 */
const telling = 8
/**
 * A prefix with this many characters is treated so at the end of the text: the rest may have been
 * cut off.
 */
const tellingAtEnd = 3

/** What an attempt sends that must not enter the history with its answer. */
interface Confidential {
  /** The endpoint's own headers: name, value, name, value… */
  readonly ownHeaders: ReadonlyArray<string>
  /** The value of the signature header. */
  readonly signature: string | undefined
  /** The endpoint's signing secrets. */
  readonly secrets: ReadonlyArray<{ readonly value: string }>
  /** Path and query of its URL. */
  readonly path: string
}

/** The schemes of RFC 7235 and similar ones: the word before the credential is not secret. */
const credential = /^(?:basic|bearer|token|digest|negotiate|api-?key|key|hmac)\s+(\S.*)$/i

const addHeader = (found: Array<string>, name: string, value: string): void => {
  // Accept, Accept-Language and similar headers have common values, which answers contain too.
  if (/^accept(-|$)/i.test(name)) return
  const login = /^basic\s+(\S+)$/i.exec(value)?.[1]
  if (login !== undefined) {
    const decoded = Buffer.from(login, "base64").toString("utf8")
    found.push(decoded)
    found.push(decoded.slice(decoded.indexOf(":") + 1))
  }
  const whole = credential.exec(value)?.[1] ?? value
  found.push(whole)
  // A credential after an unknown scheme.
  const after = /^[\w-]+\s+(\S+)$/.exec(whole)?.[1]
  if (after !== undefined) found.push(after)
  // Such as one of several cookies, or the signature in `id=…, signature="…"`.
  for (const part of whole.split(/[\s,;=:"&]+/))
    if (part.length >= telling && part !== whole && part !== after) found.push(part)
  // A receiver may echo the raw bytes: a non-ASCII header value then reads as UTF-8.
  if (/[\x80-\xff]/.test(whole)) found.push(Buffer.from(whole, "latin1").toString("utf8"))
}

/**
 * Adds the signatures in `v1,…` and `v1a,…` separated by spaces, `t=…,v1=…` and `sha256=…`, without
 * timestamps.
 */
const addSignatures = (found: Array<string>, signature: string): void => {
  for (const entry of signature.split(signature.startsWith("t=") ? "," : " ")) {
    const text = entry.slice(entry.search(/[,=]/) + 1)
    if (!entry.startsWith("t=")) found.push(text)
  }
}

/**
 * Returns the texts that must not be kept of an answer: the values of own headers and their parts
 * (credentials after `Bearer` and `Basic`, the latter also decoded), signatures, signing secrets,
 * and values in the query of the URL.
 */
export const secretsOf = ({
  ownHeaders,
  path,
  secrets,
  signature
}: Confidential): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let index = 0; index < ownHeaders.length; index += 2)
    addHeader(found, ownHeaders[index] ?? "", ownHeaders[index + 1] ?? "")
  if (signature !== undefined) addSignatures(found, signature)
  for (const { value } of secrets) {
    found.push(value)
    if (value.startsWith("wh")) found.push(value.slice(value.indexOf("_") + 1))
  }
  const query = path.indexOf("?")
  if (query !== -1)
    for (const value of new URLSearchParams(path.slice(query)).values())
      if (value.length >= telling) found.push(value)
  return found
}

/** From and to, as positions in the text that is redacted. */
type Span = readonly [from: number, to: number]

/** A text as it is, or unescaped: `places` then holds the original position of each character. */
interface UnescapedText {
  readonly text: string
  readonly places?: ReadonlyArray<number>
}

/** Escapes of JSON and JavaScript, of URLs, and of HTML. */
const escapes =
  /\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|\\(["'\\/])|((?:%[c-f][0-9a-f](?:%[89ab][0-9a-f])+))|%([0-7][0-9a-f])|&#(\d{1,5});|&#x([0-9a-f]{1,4});|&(amp|lt|gt|quot|apos);/gi
/** An escape whose end is missing. */
const broken =
  /(?:\\(?:u[0-9a-f]{0,3}|x[0-9a-f]?)?|%[0-9a-f]?|%[c-f][0-9a-f](?:%[89ab]?)?|&#?\w{0,5})$/i
const entities = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["apos", "'"]
])
/** Maximum nesting of escapes, such as JSON in JSON, or a form in JSON. */
const deepest = 3

const decodedUri = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const meaning = (match: ReadonlyArray<string | undefined>): string => {
  const [whole = "", unicode, hex, plain, utf8, percent, decimal, hexEntity, named] = match
  if (plain !== undefined) return plain
  if (utf8 !== undefined) return decodedUri(utf8)
  if (named !== undefined) return entities.get(named.toLowerCase()) ?? whole
  if (decimal !== undefined) return String.fromCharCode(Number(decimal))
  return String.fromCharCode(Number.parseInt(unicode ?? hex ?? percent ?? hexEntity ?? "0", 16))
}

/** Returns the text unescaped; undefined where it has no escapes. */
const unescaped = ({ places, text }: UnescapedText): UnescapedText | undefined => {
  const whole = text.replace(broken, "")
  const placeOf = (index: number) => places?.[index] ?? index
  const made: Array<number> = []
  let plain = ""
  let from = 0
  const copy = (to: number) => {
    for (; from < to; from++) made.push(placeOf(from))
  }
  for (const match of whole.matchAll(escapes)) {
    plain += whole.slice(from, match.index)
    copy(match.index)
    const means = meaning(match)
    for (let count = 0; count < means.length; count++) made.push(placeOf(match.index))
    plain += means
    from = match.index + match[0].length
  }
  if (from === 0 && whole.length === text.length) return undefined
  plain += whole.slice(from)
  copy(whole.length)
  // The position of the next character: a cut escape belongs to the text before it.
  made.push(placeOf(whole.length))
  return { text: plain, places: made }
}

const spansIn = ({ places, text }: UnescapedText, end: number, secrets: ReadonlyArray<string>) => {
  const spans: Array<Span> = []
  const add = (from: number, to: number) =>
    spans.push([places?.[from] ?? from, to === text.length ? end : (places?.[to] ?? to)])
  for (const secret of secrets) {
    if (secret.length < minSecretLength) continue
    const seed = secret.slice(0, telling)
    let from = text.indexOf(seed)
    while (from !== -1) {
      let length = seed.length
      while (length < secret.length && text[from + length] === secret[length]) length++
      add(from, from + length)
      from = text.indexOf(seed, from + length)
    }
    const first = seed.charCodeAt(0)
    for (let length = seed.length - 1; length >= tellingAtEnd; length--)
      if (text.charCodeAt(text.length - length) === first && text.endsWith(seed.slice(0, length)))
        add(text.length - length, text.length)
  }
  return spans
}

/**
 * Replaces each secret in a text by `[redacted]`. A prefix counts as well, from 8 characters on, or
 * from 3 at the text's end. Secrets are found as they are, and as JSON, URLs and HTML escape them.
 */
export const redacted = (text: string, secrets: ReadonlyArray<string>): string => {
  if (text.length < tellingAtEnd) return text
  const spans = spansIn({ text }, text.length, secrets)
  if (/[\\%&]/.test(text)) {
    let reading = unescaped({ text })
    for (let depth = 0; reading !== undefined && depth < deepest; depth++) {
      spans.push(...spansIn(reading, text.length, secrets))
      reading = unescaped(reading)
    }
  }
  if (spans.length === 0) return text
  spans.sort(([one], [other]) => one - other)
  let result = ""
  let done = 0
  for (const [from, to] of spans) {
    // Spans that overlap or touch become one mark.
    if (from > done || result === "") result += text.slice(done, from) + mark
    done = Math.max(done, to)
  }
  return result + text.slice(done)
}

/**
 * How much of an answer is kept, from nothing to all that is read: each level includes those before
 * it.
 */
export const answerLevels = ["none", "status", "headers", "body"] as const
export type AnswerLevel = (typeof answerLevels)[number]

/**
 * Returns what may be stored of an attempt's result: no more of the answer than `level` allows, and
 * none of the secrets that it repeats.
 *
 * @param secrets called only where there is a text that could contain them.
 */
export const keptResult = (
  result: AttemptResult,
  level: AnswerLevel,
  secrets: () => ReadonlyArray<string>
): AttemptResult => {
  const { error, response, status } = result
  if (response === undefined && error === undefined) return result
  const texts = level === "body" || level === "headers"
  const hidden = secrets()
  return {
    ...result,
    status: level === "none" ? undefined : status,
    error:
      error === undefined
        ? undefined
        : {
            class: error.class,
            message:
              // The message names the redirect's target, which is part of the answer.
              error.class === "redirect" && !texts
                ? "a redirect that is not followed"
                : redacted(error.message, hidden)
          },
    // They name targets, which are part of the answers.
    redirects: texts ? result.redirects : undefined,
    response:
      response === undefined || !texts
        ? undefined
        : {
            headers: redactedAll(response.headers, hidden),
            body: level === "body" ? redacted(response.body, hidden) : "",
            bytes: response.bytes
          }
  }
}

const redactedAll = (
  headers: Readonly<Record<string, string>>,
  secrets: ReadonlyArray<string>
): Record<string, string> => {
  const kept: Record<string, string> = {}
  for (const name in headers) kept[name] = redacted(headers[name] ?? "", secrets)
  return kept
}
