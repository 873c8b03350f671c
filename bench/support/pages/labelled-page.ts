/** A page, and what people say is written in it. */
export interface LabelledPage {
  /** What sort of page it is, or whose labels it has. */
  readonly kind: string;
  readonly name: string;
  readonly url: string;
  readonly bytes: Uint8Array;
  /** All that belongs to its content. */
  readonly text?: string;
  /** Its headline, if it is part of that; some readers give it apart. */
  readonly heading?: string;
  /** Some of what belongs to its content, and of what does not. */
  readonly holds?: readonly string[];
  readonly lacks?: readonly string[];
  readonly facts?: PageLabels;
}

/** What a page is called and so on; what is not known is left out. */
export interface PageLabels {
  readonly title?: string;
  readonly description?: string;
  readonly language?: string;
  readonly image?: string;
}

/** What somebody has read of a page. */
export interface ReadPage extends PageLabels {
  /** Undefined where they read no texts. */
  readonly text?: string;
}

/** Somebody who reads pages. */
export interface PageReader {
  readonly name: string;
  /** @returns what was read of each page, in their order; what failed is empty. */
  readAll(pages: readonly GivenPage[]): Promise<readonly ReadPage[]>;
}

/** What a reader gets: the label stays here. */
export interface GivenPage {
  readonly url: string;
  readonly bytes: Uint8Array;
  /** Decoded, for who does not do that. */
  readonly html: string;
}
