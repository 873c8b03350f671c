/** A page with its labels by people. */
export interface LabelledPage {
  /** Kind of page, or the source of its labels. */
  readonly kind: string;
  readonly name: string;
  readonly url: string;
  readonly bytes: Uint8Array;
  /** The whole text of the content. */
  readonly text?: string;
  /** The headline, if it is part of the content; some readers return it separately. */
  readonly heading?: string;
  /** Some strings inside the content and some outside it. */
  readonly holds?: readonly string[];
  readonly lacks?: readonly string[];
  readonly facts?: PageLabels;
}

/** Title and other facts of a page; unknown ones are omitted. */
export interface PageLabels {
  readonly title?: string;
  readonly description?: string;
  readonly language?: string;
  readonly image?: string;
}

/** The result of a reader for a page. */
export interface ReadPage extends PageLabels {
  /** Undefined for readers that extract no text. */
  readonly text?: string;
}

/** A program that extracts the content of pages. */
export interface PageReader {
  readonly name: string;
  /**
   * Reads pages.
   *
   * @returns the result of each page, in order; a failure is an empty result.
   */
  readAll(pages: readonly GivenPage[]): Promise<readonly ReadPage[]>;
}

/** The input of a reader: a page without its labels. */
export interface GivenPage {
  readonly url: string;
  readonly bytes: Uint8Array;
  /** The decoded page, for readers that do not decode bytes. */
  readonly html: string;
}
