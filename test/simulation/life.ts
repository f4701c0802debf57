/**
 * Returns what a log says of the delivery that a failure names: where it was stored, its attempts and
 * facts, who owned its partition, and what was done meanwhile. Empty where it names none.
 */
export const lifeOf = (log: ReadonlyArray<string>, failure: string): ReadonlyArray<string> => {
  const [, event = "", seq = "", endpoint = ""] = /((\d+)@\d+)\.(\w+)/.exec(failure) ?? []
  if (event === "") return []
  const id = log.find((line) => line.includes(`event ${event} is `))?.match(/ is ([^,]+)/)?.[1]
  const places = log.flatMap((line) => {
    const [, stream, at] = /(\S+) (\d+) holds (\S+), /.exec(line) ?? []
    return line.includes(`holds ${event}.${endpoint}.`) ? [`${stream} ${at} `] : []
  })
  const told = [
    ...[`${event}.${endpoint}`, ` ${seq}.${endpoint}.`, `event ${event} `],
    ...[`${endpoint} gets ${id} `, ".last-owner.", '{"at":', " starts", " crashes", " ends"],
    ...places
  ]
  const isOfOthers = (line: string) =>
    line.includes(" holds ") && !line.includes(` holds ${event}.${endpoint}.`)
  return log.filter((line) => !isOfOthers(line) && told.some((text) => `${line} `.includes(text)))
}
