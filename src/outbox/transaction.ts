type Parameters = ReadonlyArray<string | Uint8Array | null>

/** The client of a transaction of `pg`: a Client, or what a Pool's `connect` returns. */
export interface PgTransaction {
  readonly query: (
    text: string,
    values: Array<string | Uint8Array | null>
  ) => PromiseLike<{ readonly rowCount: number | null; readonly rows: ReadonlyArray<unknown> }>
}

/** The transaction of `postgres`: what `sql.begin` calls its function with. */
export interface PostgresTransaction {
  readonly unsafe: (
    text: string,
    parameters: Array<string | Uint8Array | null>
  ) => PromiseLike<ReadonlyArray<unknown> & { readonly count: number }>
}

export type Transaction = PgTransaction | PostgresTransaction

/** What a statement did. */
interface Done {
  /** Rows inserted, or returned. */
  readonly count: number
  readonly rows: ReadonlyArray<unknown>
}

export type Run = (text: string, parameters: Parameters) => Promise<Done>

const has = (value: unknown, name: string): boolean =>
  value !== null && (typeof value === "object" || typeof value === "function") && name in value

const isFunction = (value: unknown, name: string): boolean =>
  has(value, name) && typeof (value as Record<string, unknown>)[name] === "function"

const isPostgres = (tx: Transaction): tx is PostgresTransaction => isFunction(tx, "unsafe")

/**
 * Returns what runs a statement in the caller's transaction.
 *
 * @throws TypeError with one sentence if this is no transaction: an event must not be stored without
 *   the change that it tells of.
 */
export const runIn = (tx: Transaction): Run => {
  if (isPostgres(tx)) {
    if (isFunction(tx, "begin"))
      throw new TypeError(
        "this is the client, not a transaction: call enqueue within sql.begin((tx) => …), with tx"
      )
    return async (text, parameters) => {
      const rows = await tx.unsafe(text, [...parameters])
      return { count: rows.count, rows }
    }
  }
  if (!isFunction(tx, "query"))
    throw new TypeError(
      "the first argument must be a transaction of pg or postgres: a client after `begin`, or the tx of sql.begin"
    )
  if (has(tx, "totalCount"))
    throw new TypeError(
      "this is a pool, not a transaction: take a client with pool.connect(), and call enqueue with it between `begin` and `commit`"
    )
  const { getTransactionStatus } = tx as { readonly getTransactionStatus?: () => unknown }
  if (typeof getTransactionStatus === "function" && getTransactionStatus.call(tx) === "I")
    throw new TypeError(
      "this client has no transaction open: call enqueue between `begin` and `commit`"
    )
  return async (text, parameters) => {
    const { rowCount, rows } = await tx.query(text, [...parameters])
    return { count: rowCount ?? rows.length, rows }
  }
}
