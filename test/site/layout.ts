/** The frame shared by all pages of the demo shop: head, foot, sidebar, and the pod in which a listing shows a book. */
import { CATEGORIES, type Pod } from './catalogue.ts'
import { frozen, type Html, html } from './html.ts'

const SHOP = 'The Paper Sluice'
const STAR = html`                    <i class="icon-star"></i>
`
export const STARS = frozen(html`${[STAR, STAR, STAR, STAR, STAR]}`)

/** Titles of five or more words are cut after the fourth: the whole title is in the `title` attribute. */
export function shortTitle(title: string): string {
  let end = -1
  for (let word = 0; word < 4; word++) {
    end = title.indexOf(' ', end + 1)
    if (end === -1) return title
  }
  return `${title.slice(0, end)} ...`
}

/** The location of a page, which determines how its links are written. */
export interface Place {
  /** From here to the root of the site. */
  readonly root: string
  /** From here to /catalogue/. */
  readonly catalogue: string
}
export const AT_ROOT: Place = { root: '', catalogue: 'catalogue/' }
export const IN_CATALOGUE: Place = { root: '../', catalogue: '' }
export const IN_PRODUCT: Place = { root: '../../', catalogue: '../' }

export function head(place: Place, title: string, description: string): Html {
  return html`<!DOCTYPE html>
<!--[if lt IE 9]>      <html lang="en-gb" class="no-js old-browser"> <![endif]-->
<!--[if gt IE 8]><!--> <html lang="en-gb" class="no-js"> <!--<![endif]-->
    <head>
        <title>
    ${title} | ${SHOP}
</title>

        <meta http-equiv="content-type" content="text/html; charset=UTF-8" />
        <meta name="created" content="1st Feb 2024 08:00" />
        <meta name="description" content="
    ${description}
" />
        <meta name="viewport" content="width=device-width" />
        <meta name="robots" content="NOARCHIVE,NOCACHE" />

        <!-- Old browsers need to be told about new elements -->
        <!--[if lt IE 9]>
        <script src="${place.root}static/shop/js/html5-elements.js"></script>
        <![endif]-->


            <link rel="shortcut icon" href="${place.root}static/shop/favicon.ico" />


        <link rel="stylesheet" type="text/css" href="${place.root}static/shop/css/styles.css" />
        <link rel="stylesheet" type="text/css" href="${place.root}static/shop/css/calendar.css" />


    </head>

    <body id="default" class="default">


    <header class="header container-fluid">
        <div class="page_inner">
            <div class="row">
                <div class="col-sm-8 h1"><a href="${place.root}index.html">${SHOP}</a><small> Books by the number</small>
</div>


            </div>
        </div>
    </header>


<div class="container-fluid page">
    <div class="page_inner">
`
}

export function foot(place: Place): Html {
  return html`
    </div><!-- /page_inner -->
</div><!-- /container-fluid -->


<footer class="footer container-fluid">


</footer>


            <!-- Scripts -->
            <script src="${place.root}static/shop/js/library.min.js"></script>
            <script>window.shop || document.write('<script src="${place.root}static/shop/js/library.js"><\\/script>')</script>
    <script type="text/javascript" src="${place.root}static/shop/js/bootstrap.min.js"></script>
    <script src="${place.root}static/shop/js/shop/ui.js" type="text/javascript" charset="utf-8"></script>
    <script src="${place.root}static/shop/js/calendar/calendar.js" type="text/javascript" charset="utf-8"></script>
        <script type="text/javascript">
            $(function() {

                shop.init();

            });
        </script>


        <!-- Version: demo -->

    </body>
</html>
`
}

/** The path of a category, from /catalogue/. The pages themselves are not part of the demo: they respond with 404. */
export function categoryHref(category: string): string {
  return `category/books/${category.toLowerCase().replaceAll(' ', '-')}_${CATEGORIES.indexOf(category) + 2}/index.html`
}

export function sidebar(place: Place): Html {
  const entries = CATEGORIES.map(
    (category) => html`
                    <li>
                        <a href="${place.catalogue}${categoryHref(category)}">

                                ${category}

                        </a>

                        </li>


`,
  )
  return html`
            <aside class="sidebar col-sm-4 col-md-3">

                <div id="promotions_left">

                </div>


        <div class="side_categories">
            <ul class="nav nav-list">

                    <li>
                        <a href="${place.catalogue}category/books_1/index.html">

                                Books

                        </a>

                        <ul>
${entries}
                            </ul></li>


            </ul>
        </div>


            </aside>
`
}

/** `spelling` is appended to the links: a fragment or a query that leads to the same book. */
export function pod(book: Pod, place: Place, spelling = ''): Html {
  const href = `${place.catalogue}${book.path.slice('/catalogue/'.length)}${spelling}`
  return html`
                        <li class="col-xs-6 col-sm-4 col-md-3 col-lg-3">



    <article class="product_pod">

            <div class="image_container">


                    <a href="${href}"><img src="${place.root}${book.imagePath.slice(1)}" alt="${book.title}" class="thumbnail"></a>


            </div>



                <p class="star-rating ${book.rating}">
${STARS}                </p>



            <h3><a href="${href}" title="${book.title}">${shortTitle(book.title)}</a></h3>



            <div class="product_price">





        <p class="price_color">${book.price}</p>


<p class="instock availability">
    <i class="icon-ok"></i>

        ${book.availability}

</p>





    <form>
        <button type="submit" class="btn btn-primary btn-block" data-loading-text="One moment...">Add to basket</button>
    </form>



            </div>

    </article>

</li>
`
}
