/** Metrics in Prometheus's text format. */
export interface MetricsSource {
  readonly contentType: string;
  read(): Promise<string>;
}
