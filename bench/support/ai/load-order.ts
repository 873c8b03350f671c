/** What one load asks, and how. */
export interface LoadOrder {
  readonly url: string;
  readonly model: string;
  /** Sent as bearers, in turn. */
  readonly keys: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly stream: boolean;
  readonly connections: number;
  readonly seconds: number;
  /** Requests a second, constantly; as fast as the answers come when undefined. */
  readonly rate?: number | undefined;
}

/** What came of it; times in milliseconds. */
export interface LoadResult {
  readonly answered: number;
  readonly failed: number;
  readonly firstFailure: string | undefined;
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  readonly firstTokenP50: number;
  readonly firstTokenP99: number;
  /** What an answer costs the load generator itself. */
  readonly loadCpuMicroseconds: number;
}
