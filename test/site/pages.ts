/** The demo shop's HTML: listing and product pages with the structure that book shop scrapers are written against. */
import { type Book, bookOf, PAGE_SIZE, pageCount, podOf } from './catalogue.ts'
import { frozen, type Html, html, nothing, toText } from './html.ts'
import {
  AT_ROOT,
  categoryHref,
  foot,
  head,
  IN_CATALOGUE,
  IN_PRODUCT,
  type Place,
  pod,
  STARS,
  sidebar,
} from './layout.ts'
import { MISBEHAVIOUR } from './misbehaviour.ts'

const NOTICE = frozen(
  html`<div class="alert alert-warning" role="alert"><strong>Please note:</strong> this shop is a bundled demonstration. Its books, prices and ratings are generated from a number and mean nothing.</div>`,
)

const listingHead = (place: Place) =>
  frozen(html`${head(place, 'All books', '')}
    <ul class="breadcrumb">
        <li>
            <a href="${place.root}index.html">Home</a>
        </li>
        <li class="active">All books</li>
    </ul>

        <div class="row">
${sidebar(place)}
            <div class="col-sm-8 col-md-9">

                <div class="page-header action">
                    <h1>All books</h1>
                </div>


<div id="messages">

</div>


                <div id="promotions">

                </div>

`)
const LISTING_HEAD = { root: listingHead(AT_ROOT), catalogue: listingHead(IN_CATALOGUE) }
const LISTING_FOOT = { root: frozen(foot(AT_ROOT)), catalogue: frozen(foot(IN_CATALOGUE)) }
const PRODUCT_FOOT = frozen(foot(IN_PRODUCT))

export interface ListingOptions {
  /** The page at `/` and `/index.html`, whose links start with `catalogue/`. */
  readonly atRoot?: boolean
  /** With the duplicate links of `MISBEHAVIOUR.duplicates`. */
  readonly misbehave?: boolean
}

/** Listing `page` (1 … pageCount). The caller checks that the page exists. */
export function listingPage(page: number, products: number, options: ListingOptions = {}): Html {
  const place = options.atRoot ? AT_ROOT : IN_CATALOGUE
  const side = options.atRoot ? 'root' : 'catalogue'
  const pages = pageCount(products)
  const first = (page - 1) * PAGE_SIZE + 1
  const last = Math.min(page * PAGE_SIZE, products)
  const pods: Html[] = []
  for (let id = first; id <= last; id++) pods.push(pod(podOf(id), place))
  const { duplicates } = MISBEHAVIOUR
  if (options.misbehave && page === duplicates.page) {
    if (duplicates.fragment <= last) pods.push(pod(podOf(duplicates.fragment), place, '#reviews'))
    if (duplicates.tracking <= last)
      pods.push(pod(podOf(duplicates.tracking), place, '?utm_source=letter&utm_medium=email'))
  }
  const pager = (name: string, to: number) => html`
                <li class="${name}"><a href="${place.catalogue}page-${to}.html">${name}</a></li>`
  return html`${LISTING_HEAD[side]}
    <form method="get" class="form-horizontal">

        <div style="display:none">

        </div>

                    <strong>${products}</strong> results - showing <strong>${first}</strong> to <strong>${last}</strong>.

    </form>

        <section>
            ${NOTICE}

            <div>
                <ol class="row">
${pods}
                </ol>



    <div>
        <ul class="pager">
${page > 1 ? pager('previous', page - 1) : nothing}
            <li class="current">

                Page ${page} of ${pages}

            </li>
${page < pages ? pager('next', page + 1) : nothing}
        </ul>
    </div>


            </div>
        </section>


            </div>

        </div><!-- /row -->
${LISTING_FOOT[side]}`
}

/** Listing `page` as one text. */
export function renderListing(page: number, products: number, options: ListingOptions = {}): string {
  return toText(listingPage(page, products, options))
}

/** How many books "you recently viewed" follow a product: none on one page in eight, one to three on another, else six. */
function viewedCount(id: number): number {
  if (id % 8 === 1) return 0
  return id % 8 === 2 ? 1 + (id % 3) : 6
}

function recentlyViewed(id: number, products: number): Html {
  const pods: Html[] = []
  for (let i = 1; i <= viewedCount(id); i++) {
    const other = ((id + i * 7919) % products) + 1
    if (other !== id) pods.push(pod(podOf(other), IN_PRODUCT))
  }
  if (pods.length === 0) return nothing
  return html`
        <div class="sub-header"><h2>Products you recently viewed</h2></div>
        <ul class="row">
${pods}
        </ul>
`
}

/** Product page `id` (1 … products). */
export function productPage(id: number, products: number): Html {
  const book = bookOf(id)
  return html`${head(IN_PRODUCT, book.title, book.description ?? '')}
<ul class="breadcrumb">
    <li>
        <a href="../../index.html">Home</a>
    </li>


        <li>
            <a href="../category/books_1/index.html">Books</a>
        </li>

        <li>
            <a href="../${categoryHref(book.category)}">${book.category}</a>
        </li>

        <li class="active">${book.title}</li>


</ul>


<div id="messages">

</div>


                <div class="content">


                    <div id="promotions">

                    </div>


                    <div id="content_inner">

<article class="product_page"><!-- Product starts here -->

    <div class="row">


        <div class="col-sm-6">


        <div id="product_gallery" class="carousel">
            <div class="thumbnail">
                <div class="carousel-inner">
                    <div class="item active">

                            <img src="../..${book.imagePath}" alt="${book.title}" />

                    </div>
                </div>
            </div>
        </div>


        </div>
${productMain(book)}
    </div><!-- /row -->

${book.description === null ? nothing : productDescription(book.description)}

    <div class="sub-header">
        <h2>Product Information</h2>
    </div>
${productTable(book)}


        <section>
            <div id="reviews" class="sub-header">
            </div>
        </section>

${recentlyViewed(id, products)}

</article><!-- Product ends here -->
</div>
                </div>
${PRODUCT_FOOT}`
}

function productMain(book: Book): Html {
  return html`
        <div class="col-sm-6 product_main">


            <h1>${book.title}</h1>



        <p class="price_color">${book.price}</p>


<p class="instock availability">
    <i class="icon-ok"></i>

        ${book.availability} (${book.stock} available)

</p>



    <p class="star-rating ${book.rating}">
${STARS}
        <!-- <small><a href="${book.path.replace('index.html', 'reviews/')}">no reviews yet</a></small>
         -->&nbsp;

</p>


            <hr/>

            ${NOTICE}


        </div><!-- /col-sm-6 -->
`
}

const productDescription = (description: string) => html`
        <div id="product_description" class="sub-header">
            <h2>Product Description</h2>
        </div>
        <p>${description}</p>
`

function productTable(book: Book): Html {
  return html`    <table class="table table-striped">

        <tr>
            <th>UPC</th><td>${book.upc}</td>
        </tr>

        <tr>
            <th>Product Type</th><td>Books</td>
        </tr>


            <tr>
                <th>Price (excl. tax)</th><td>${book.price}</td>
            </tr>

                <tr>
                    <th>Price (incl. tax)</th><td>${book.price}</td>
                </tr>
                <tr>
                    <th>Tax</th><td>£0.00</td>
                </tr>

            <tr>
                <th>Availability</th>
                <td>${book.availability} (${book.stock} available)</td>
            </tr>


            <tr>
                <th>Number of reviews</th>
                <td>0</td>
            </tr>

    </table>`
}

/** Product page `id` as one text. */
export function renderProduct(id: number, products: number): string {
  return toText(productPage(id, products))
}

/** The apology of a shop whose back end is down: a 200 without a product. */
export const softErrorPage = frozen(html`${head(IN_PRODUCT, 'Sorry', '')}
    <div class="content"><h1>Something went wrong</h1><p>Please try again later.</p></div>
${foot(IN_PRODUCT)}`)
