import { Schema } from "effect"

/**
 * Returns what makes JSON of a schema's values, as it is answered: times are texts
 * (domain/timestamp.ts), and so are durations that are set.
 */
export const jsonOf = <A extends object, I>(schema: Schema.Codec<A, I>) => {
  const encode = Schema.encodeSync(Schema.toCodecJson(schema))
  return (value: A): Record<string, unknown> => ({ ...Object(encode(value)) })
}
