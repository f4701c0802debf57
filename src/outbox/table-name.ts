/** The table of an outbox, as statements name it. */
export interface TableName {
  /** Quoted, with its schema where one was given. */
  readonly quoted: string
  /** Without its schema: what names of its indexes and the channel of its notices begin with. */
  readonly base: string
  /** Its schema's prefix, quoted, or nothing. */
  readonly prefix: string
}

/** The table that is used if none is named. */
export const usualTable = "petrel_outbox"
export const usualTableName: TableName = { base: usualTable, prefix: "", quoted: `"${usualTable}"` }

export const tableExpected =
  "must be a table such as petrel_outbox or billing.petrel_outbox: letters, digits and _, at most 40 characters each"

const namePattern = /^(?:([A-Za-z_][A-Za-z0-9_]{0,39})\.)?([A-Za-z_][A-Za-z0-9_]{0,39})$/

/** Parses the name of a table, with or without a schema. Returns undefined for any other text. */
export const readTable = (text: string): TableName | undefined => {
  const [, schema, base] = namePattern.exec(text) ?? []
  if (base === undefined) return undefined
  const prefix = schema === undefined ? "" : `"${schema}".`
  return { base, prefix, quoted: `${prefix}"${base}"` }
}
