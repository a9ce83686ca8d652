from django.urls import include, path

urlpatterns = [path("", include("evaluations.api_site")), path("", include("evaluations.urls"))]

handler400 = "evaluations.web.error_views.bad_request"
handler403 = "evaluations.web.error_views.forbidden"
handler404 = "evaluations.web.error_views.not_found"
handler500 = "evaluations.web.error_views.server_error"
