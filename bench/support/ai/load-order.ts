/** The parameters of one load. */
export interface LoadOrder {
  readonly url: string;
  readonly model: string;
  /** API keys, sent as bearer tokens in turn. */
  readonly keys: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: boolean;
  readonly connections: number;
  readonly seconds: number;
  /** Constant rate in requests a second; undefined for as fast as the answers arrive. */
  readonly rate?: number | undefined;
}

/** The result of a load; times in milliseconds. */
export interface LoadResult {
  readonly answered: number;
  readonly failed: number;
  readonly firstFailure: string | undefined;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly firstTokenP50: number;
  readonly firstTokenP99: number;
  /** CPU time of the load generator for each answer. */
  readonly loadCpuMicroseconds: number;
}
